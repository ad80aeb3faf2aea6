"""Why an answer ended, where it says that there is none: the server broke it off, a filter took it away, or
nothing was said; and how answers of known protocols say it.

Chat completions know `stop`, `length`, `tool_calls` and `content_filter`; servers and gateways have more, under
names of their own. What is not known here is no failure: new reasons are judged as answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.json_reply import at_path, state_of_task
from tui_eval.agents.loose_json import text_of

_BROKEN_OFF = frozenset(
    (
        "error",  # OpenRouter, Mistral, the AI SDK (nao)
        "failed", "cancelled", "canceled",  # the responses API
        "in_progress", "queued",  # the same: it goes on in the background
        "abort", "aborted", "interrupted",  # vLLM, SGLang; nao
        "timeout", "network_error",
        "insufficient_system_resource",  # DeepSeek
        # A call of a tool that could not be read, or was refused: what had been said before it is no answer. Gemini
        # (`function_call_filter: MALFORMED_FUNCTION_CALL` of its compatible end), Bedrock
        "malformed_function_call", "function_call_filter", "unexpected_tool_call", "too_many_tool_calls",
        "missing_thought_signature", "malformed_response",
        "malformed_tool_use", "malformed_model_output",
        "error_limit", "user_cancel",  # Cohere
    )
)  # fmt: skip
_FILTERED = frozenset(
    (
        "content_filter",  # OpenAI, Azure, OpenRouter; `content_filter: SAFETY` of Gemini's compatible end
        "refusal",  # Anthropic: its classifiers, not the model's own refusing
        "safety", "recitation", "blocklist", "prohibited_content", "spii",  # Gemini
        "sensitive",  # Zhipu
        "content_filtered", "guardrail_intervened",  # Bedrock
        "error_toxic",  # Cohere
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


# -- Answers in the forms of known protocols, and how they say that they have ended, and why.
#
# An endpoint of somebody's own may hand on a provider's answer as it came, and `reply` names the text in it: of a
# stream that is cut off, or an answer that a filter stopped, what was said would be judged as all of it. Chat
# completions, Anthropic's messages, OpenAI's responses, Gemini, Bedrock's Converse, Cohere, Ollama, the AI SDK, AG-UI
# and A2A are known. A stream counts as one of theirs where it begins as theirs do: one that hands on the pieces of a
# text alone says nothing of its end.


ENDS_OF_RESPONSES = ("response.completed", "response.incomplete", "response.failed")
_ENDS = {
    "message_start": ("message_stop",),  # Anthropic
    "response.created": ENDS_OF_RESPONSES,  # OpenAI's
    "RUN_STARTED": ("RUN_FINISHED", "RUN_ERROR"),  # AG-UI
}
"""The types of the events that end a stream, by that of its first."""
_OF_AI_SDK, _ENDS_OF_AI_SDK = "text-start", ("finish", "abort")
_OF_FIRST = {
    "message_start": "message",
    "response.created": "response",
    "RUN_STARTED": "runId",
    _OF_AI_SDK: "id",
}
"""What the first event has beside its type: a stream of one's own may begin with `message_start`, and end otherwise."""
_OF_GEMINI = ("usageMetadata", "modelVersion")
_OF_OLLAMA = frozenset(("model", "created_at"))
"""What their pieces have beside the text: `done: false` alone may be a fact of a conversation."""
_PLACES = (
    "choices[0].finish_reason",
    "candidates[0].finishReason",
    "promptFeedback.blockReason",
    "messageStop.stopReason",  # Bedrock's ConverseStream
)
_PLACES_OF = {
    "message": "stop_reason",
    "message_delta": "delta.stop_reason",
    "finish": "finishReason",
    "message-end": "delta.finish_reason",  # Cohere
}
"""Where a reason stands, by the type of the event or the answer."""


def ended_by(values: Sequence[Any]) -> str | None:
    """Why an answer ended, by the last of its events that says so; None: it does not say."""
    of_ai_sdk = any(_begins(value, _OF_AI_SDK) for value in values)
    for value in reversed(values):
        if reason := _reason(value) or ("aborted" if of_ai_sdk and _type_of(value) == "abort" else ""):
            return reason
    return None


def goes_on(values: Sequence[Any], done: bool = False) -> bool:
    """Whether an answer says that there is more of it to come: it is a known stream without its end. `done`: it had a
    `[DONE]`, which ends those that have it."""
    if not done and (_pieces_go_on(values) or _begun_and_open(values, _OF_AI_SDK, _ENDS_OF_AI_SDK)):
        return True
    if any(_begun_and_open(values, first, ends) for first, ends in _ENDS.items()):
        return True
    if ended_by(values) == "pause_turn":  # Anthropic: who asks is to go on with it
        return True
    if next(filter(None, map(state_of_task, reversed(values))), "") in ("submitted", "working"):
        return True
    return _gemini_goes_on(values) or _ollama_goes_on(values)


def _reason(value: Any) -> str:
    """What an event, or a whole answer, says of the end of its text; empty: nothing."""
    if not isinstance(value, dict):
        return ""
    kind = _type_of(value)
    response = value.get("response") if kind in _ENDS["response.created"] else value
    if isinstance(response, dict) and (response is not value or response.get("object") == "response"):
        why = at_path(response, "incomplete_details.reason")
        return why if isinstance(why, str) else _told(response.get("status"))
    places = [*_PLACES, *([_PLACES_OF[kind]] if kind in _PLACES_OF else [])]
    if value.get("done") is True and value.keys() >= _OF_OLLAMA:
        places.append("done_reason")
    if isinstance(at_path(value, "output.message.content"), list):  # Bedrock's Converse
        places.append("stopReason")
    if "generation_id" in value or isinstance(at_path(value, "message.content"), list):  # Cohere
        places.append("finish_reason")
    return next(filter(None, (_told(at_path(value, place)) for place in places)), "")


def _pieces_go_on(values: Sequence[Any]) -> bool:
    """Whether the pieces of a chat completion all have `finish_reason: null`: those of the last, where an agent's steps
    are handed on, too."""
    pieces = [value for value in values if isinstance(at_path(value, "choices[0].delta"), dict)]
    said = [
        at_path(value, "choices[0].finish_reason")
        for value in pieces
        if value.get("id") == pieces[-1].get("id")
    ]
    return None in said and not any(isinstance(reason, str) for reason in said)


def _begun_and_open(values: Sequence[Any], first: str, ends: Sequence[str]) -> bool:
    begun = next((place for place in range(len(values), 0, -1) if _begins(values[place - 1], first)), 0)
    if not begun or ended_by(values[begun:]) is not None:
        return False
    return not any(_type_of(value) in ends for value in values[begun:])


def _begins(value: Any, first: str) -> bool:
    return _type_of(value) == first and value.get(_OF_FIRST[first]) is not None


def _gemini_goes_on(values: Sequence[Any]) -> bool:
    pieces = [value for value in values if isinstance(at_path(value, "candidates[0].content"), dict)]
    theirs = any(not value.keys().isdisjoint(_OF_GEMINI) for value in pieces)
    return theirs and ended_by(values) is None


def _ollama_goes_on(values: Sequence[Any]) -> bool:
    last = values[-1] if values else None
    if not isinstance(last, dict) or last.get("done") is not False or not last.keys() >= _OF_OLLAMA:
        return False
    return isinstance(at_path(last, "message.content"), str) or isinstance(last.get("response"), str)


def _type_of(value: Any) -> str:
    return text_of(value.get("type")) if isinstance(value, dict) else ""


def _told(reason: Any) -> str:
    return reason if isinstance(reason, str) else ""
