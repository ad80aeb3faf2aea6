"""The four formats of suites, a folder each: recognising, reading, judging, accepting, saving.

Nothing outside these folders knows what only one format knows; what several share is in `suites`, `assertions`
and `yaml`. May not: start runs, know the store, the reports or the app.
"""
