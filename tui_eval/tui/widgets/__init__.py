"""What is drawn: lists, panes, tables, plots, from values of `state`.

May not: fetch, judge, know screens.
"""
