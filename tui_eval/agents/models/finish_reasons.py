"""Why an answer ended, where it says that there is none: the server broke it off, a filter took it away, or
nothing was said.

Chat completions know `stop`, `length`, `tool_calls` and `content_filter`; servers and gateways have more, under
names of their own. What is not known here is no failure: new reasons are judged as answers.
"""

from __future__ import annotations

from tui_eval.agents.base import AgentError

_BROKEN_OFF = frozenset(
    (
        "error",  # OpenRouter, Mistral, the AI SDK (nao)
        "failed", "cancelled", "canceled",  # the responses API
        "in_progress", "queued",  # the same: it goes on in the background
        "abort", "aborted", "interrupted",  # vLLM, SGLang; nao
        "timeout", "network_error",
        "insufficient_system_resource",  # DeepSeek
    )
)  # fmt: skip
_FILTERED = frozenset(
    (
        "content_filter",  # OpenAI, Azure, OpenRouter; `content_filter: SAFETY` of Gemini's compatible end
        "refusal",  # Anthropic: its classifiers, not the model's own refusing
        "safety", "recitation", "blocklist", "prohibited_content", "spii",  # Gemini
        "sensitive",  # Zhipu
        "content_filtered", "guardrail_intervened",  # Bedrock
    )
)  # fmt: skip
_CUT_OFF = frozenset(
    (
        "length",  # Chat Completions
        "max_tokens",  # Anthropic, Gemini, Bedrock
        "max_output_tokens", "incomplete",  # the responses API
        "model_context_window_exceeded",  # Anthropic
        "model_length",  # Mistral
    )
)  # fmt: skip
_OF_ITSELF = frozenset(("stop", "end_turn", "stop_sequence", "completed", "eos"))


def is_broken_off(reason: str | None) -> bool:
    """Whether the server gave up: what was said before is no whole answer."""
    return _plain(reason) in _BROKEN_OFF


def is_filtered(reason: str | None) -> bool:
    """Whether a filter of the provider's stands in the place of the answer, or of its rest."""
    return _plain(reason) in _FILTERED


def cut_off(reason: str | None) -> bool:
    """Whether the answer ended at a limit of its length, and may have gone on."""
    return reason is not None and _plain(reason) in _CUT_OFF


def error(who: str, why: str, reason: str | None, answer: str) -> AgentError:
    """The error of an answer that is none; `why` is what `failure` says of its reason, `answer` what was said
    before."""
    code = "filtered" if is_filtered(reason) else "broke-off"
    return AgentError(f"{who} {why}", answer=answer, code=code, said=why)


def failure(reason: str | None, *, filters_too: bool = True) -> str | None:
    """Why there is no answer, in words that follow the name of who answered; None: there is one. Without
    `filters_too` a filter's word counts as an answer, as in promptfoo."""
    if is_broken_off(reason):
        return f"broke the answer off (finish reason {_shown(reason)})"
    if filters_too and is_filtered(reason):
        return (
            f"did not let the answer through: its content filter stopped it (finish reason {_shown(reason)})"
        )
    return None


def silence(text: str, reason: str | None, *, called: bool) -> str | None:
    """Why an answer without text is none, in words that follow the name of who answered; None: it is one. A model
    that `called` tools in its turn may end it without a word, as long as it ended of itself."""
    if text.strip() or (called and (reason is None or _plain(reason) in _OF_ITSELF)):
        return None
    why = _shown(reason)
    return f"answered without text ({f'finish reason {why}' if why else 'no finish reason'})"


def _plain(reason: str | None) -> str:
    if reason in _OF_ITSELF:  # nearly all are
        return reason
    return (reason or "").partition(":")[0].strip().lower().replace("-", "_").replace(" ", "_")


def _shown(reason: str | None) -> str:
    return " ".join((reason or "").split())[:60]
