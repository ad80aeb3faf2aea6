"""What JavaScript means, in Python: its values and texts, its operators, its patterns. One place for each."""
