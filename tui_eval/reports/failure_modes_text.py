"""Failure modes in words, for the terminal."""

from __future__ import annotations

from tui_eval.store.failure_modes import Assessment, FailedAttempt, FailureMode, assess, classified, mode_of

__all__ = ["Assessment", "FailedAttempt", "FailureMode", "assess", "mode_of", "text"]


def text(assessment: Assessment) -> str:
    """For the terminal: passed, failed, then each mode with its count, share and examples."""
    failed = assessment.attempts - assessment.passed
    lines = [f"{assessment.passed}/{assessment.attempts} attempts passed."]
    if not failed:
        return lines[0]
    lines += [f"{failed}/{assessment.attempts} attempts failed.", "Modes of failure:"]
    for mode in classified(assessment).modes:
        lines.append(f"{mode.count}/{failed} failures ({mode.share * 100:.2f}%): {mode.name or mode.what}")
        if mode.name:
            lines.extend(f"    {what}" for what in (mode.what, *mode.also))
        lines.extend(
            f"    {number}. {example.case_id} #{example.attempt}: {_line(example.message)}"
            for number, example in enumerate(mode.examples, 1)
        )
    if assessment.note:
        lines.append(assessment.note)
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())
