"""Models that give a text scores instead of an answer: what promptfoo's `classifier` and `moderation`
assertions ask."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options, below, usual_secret
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.config.config_values import OPENAI_ADDRESS
from tui_eval.config.project import AgentSpec
from tui_eval.guard import figures

HUGGING_FACE = "https://router.huggingface.co/hf-inference"


class ScoringAgent(Agent):
    """One model; there is nothing to talk about with it."""

    capabilities = Capabilities()
    keeps_pace = True
    client: HttpClient
    url: str

    @abstractmethod
    async def scores(self, text: str) -> dict[str, float]:
        """The score of each class that the text has.

        Raises:
            AgentError: it does not answer, or with something else.
        """

    async def open(self, context: SessionContext) -> Session:
        """Nobody can talk to it."""
        raise AgentError(
            f"{self.spec.name} gives scores, not answers: it serves assertions only", code="bad-setting"
        )

    async def close(self) -> None:
        """Close connections."""
        await self.client.close()

    async def _asked(self, body: dict[str, Any]) -> Any:
        call = self.client.call("POST", self.url, body=encode(body))
        text = (await call.whole()).decode("utf-8", "replace")
        try:
            return decode(text)
        except ValueError:
            raise AgentError(
                f"{self.url} did not answer with JSON: {one_line(text, 120)}",
                code="unreadable",
                said=f"no JSON: {one_line(text, 120)}",
                place=place_of(self.url),
            ) from None


class HuggingFaceClassifier(ScoringAgent):
    """`huggingface:text-classification:MODEL`, there or at an endpoint of one's own."""

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"url", "api_key"}))
        self.url = options.text("url") or f"{HUGGING_FACE}/models/{spec.model}"
        key = usual_secret(options, "api_key", self.url, "HF_TOKEN", "HF_API_TOKEN")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.client = HttpClient(headers=headers, retries=spec.retries, pace=self.pace)

    async def scores(self, text: str) -> dict[str, float]:
        """The score of each label."""
        answer = await self._asked({"inputs": text, "parameters": {}})
        rows = answer[0] if isinstance(answer, list) and answer else None
        try:
            found = {str(row["label"]): _score(row["score"]) for row in rows or ()}
        except (TypeError, KeyError, ValueError):
            found = {}
        return found or _no(self.url, answer)


class OpenAIModeration(ScoringAgent):
    """`openai:moderation:MODEL`, there or at a server of the same protocol."""

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"base_url", "api_key", "headers"}))
        base = (options.text("base_url") or OPENAI_ADDRESS).rstrip("/")
        self.url = below(base, "moderations")
        key = usual_secret(options, "api_key", base, "OPENAI_API_KEY")
        headers = options.headers()
        if key and "authorization" not in {name.lower() for name in headers}:
            headers["Authorization"] = f"Bearer {key}"
        self.client = HttpClient(headers=headers, retries=spec.retries, pace=self.pace)

    async def scores(self, text: str) -> dict[str, float]:
        """The score of each category for which the text is flagged."""
        model = self.spec.model or "omni-moderation-latest"
        given: Any = [{"type": "text", "text": text}] if model.startswith("omni-") else text
        answer = await self._asked({"model": model, "input": given})
        results = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(results, list):
            return _no(self.url, answer)
        found: dict[str, float] = {}
        for result in results:
            if not isinstance(result, dict) or "flagged" not in result:
                return _no(self.url, answer)  # that it is not flagged, nobody has said
            if not result["flagged"]:
                continue
            scores, categories = result.get("category_scores"), result.get("categories")
            if not isinstance(categories, dict):
                return _no(self.url, answer)
            for category in [name for name, flagged in categories.items() if flagged]:
                try:
                    score = _score(scores[category]) if isinstance(scores, dict) else 0.0
                except (TypeError, KeyError, ValueError):
                    score = 0.0  # it is flagged, whatever the score
                found[category] = max(found.get(category, 0.0), score)
        return found


def _score(value: Any) -> float:
    """Raises `ValueError`: it is no finite number."""
    if isinstance(value, str):
        value = float(value)
    if isinstance(value, bool):
        raise ValueError("not a number")
    if not figures.is_finite(value):
        raise ValueError("not a finite number")
    return float(value)


def _no(url: str, answer: Any) -> dict[str, float]:
    raise AgentError(
        f"{url} did not answer with scores: {one_line(text_of(answer), 120)}",
        code="unreadable",
        said=f"no scores: {one_line(text_of(answer), 120)}",
        place=place_of(url),
    )
