"""What the differences of two frames have in common: at most three findings, each measured.

Imported as a package, never a module of it alone: it is first asked for in threads, of which one that imports a module
and one that imports the package would wait for each other, and one of the two fail.

May not: change how rows are judged or aligned; say what it has not measured.
"""

from tui_eval.frames.diagnosis.diagnose import Diagnosis, diagnose, diagnosis_of, diagnosis_of_details
from tui_eval.frames.diagnosis.finding import Finding, codes, name_of, sentence, sorted_words, what

__all__ = [
    "Diagnosis",
    "Finding",
    "codes",
    "diagnose",
    "diagnosis_of",
    "diagnosis_of_details",
    "name_of",
    "sentence",
    "sorted_words",
    "what",
]
