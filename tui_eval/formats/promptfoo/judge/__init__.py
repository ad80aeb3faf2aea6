"""promptfoo's assertions: one module per family, a table of types, and the rules that add scores up."""
