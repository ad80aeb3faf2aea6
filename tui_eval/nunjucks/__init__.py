"""nunjucks' templates, as promptfoo suites write them, laid over jinja2's sandbox, on JavaScript's values.

May not: know suites or agents; read files but through `guard`.
"""
