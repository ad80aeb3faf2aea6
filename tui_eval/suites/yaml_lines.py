"""YAML with line numbers, as all readers use it; it lives in `guard`, where configuration reads it too."""

from tui_eval.guard.yaml_lines import DEEPEST, MOST_VALUES, Document, Lines, load, load_all

__all__ = ["DEEPEST", "MOST_VALUES", "Document", "Lines", "load", "load_all"]
