"""What the differences of two frames have in common: at most three findings, each measured.

May not: change how rows are judged or aligned; say what it has not measured.
"""

from tui_eval.frames.diagnosis.diagnose import Diagnosis, diagnose, diagnosis_of, diagnosis_of_details
from tui_eval.frames.diagnosis.finding import Finding, codes, sentence, what

__all__ = [
    "Diagnosis",
    "Finding",
    "codes",
    "diagnose",
    "diagnosis_of",
    "diagnosis_of_details",
    "sentence",
    "what",
]
