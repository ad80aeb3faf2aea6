"""Hashes of what an answer and its verdict rest on beside the case itself: the agent's configuration, its files, and
the files that a case names. They are the same wherever the project lies, and no secret's value is in them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.agents import of_templates
from tui_eval.agents.neuro_san.neuro_san_worker import several
from tui_eval.agents.promptfoo.promptfoo_env import read_when_asked
from tui_eval.agents.promptfoo.promptfoo_providers import RELAYS
from tui_eval.config.config_values import variables_in, with_names
from tui_eval.config.project import AgentSpec, Config, ConfigError, database, database_spec, fill
from tui_eval.engine.agent_files import (
    IN_FOLDERS,
    Imports,
    folder_files,
    imports_others,
    named_files,
    program_folders,
    without_written,
)
from tui_eval.engine.case_files import (
    LARGEST,
    MAY_NAME,
    UNNAMED,
    case_files,
    files_in_texts,
    files_named,
    question_files,
    sent_variables,
    text_of,
    variables_read,
    verdict_files,
    with_code,
)
from tui_eval.engine.plan import Job, agent_of, databases_of, named_agent, tool_databases
from tui_eval.formats import format_of
from tui_eval.guard.paths import inside, read_plain
from tui_eval.guard.secrets import MASK, in_addresses, no_secret, secret_name, without_secret_parts
from tui_eval.guard.trust import NeedsTrust, Trust, from_root, variable
from tui_eval.model import Case
from tui_eval.store.encoding import encode_json
from tui_eval.suites.identity import canonical

MOST_FILES = 5_000
"""Files that the cases of a run name, at most: with more nothing is said of any."""
SCRIPTS = frozenset({"python", "javascript", "ruby", "command"})
"""Types of agents that are people's code, and see the whole test."""
_FILE_LIMIT = 200  # files of one agent that are hashed; more are known by their size and time
_OF_LIBRARY = {"manifest": "AGENT_MANIFEST_FILE", "tool_path": "AGENT_TOOL_PATH"}
"""What neuro-san's library takes from the environment where an entry says nothing."""
_READ_BY = {"neuro-san": ("AGENT_TEST_THINKING_BASIS",), "ruby": ("PROMPTFOO_RUBY",)}
_OF_CLOUDS = {
    "bedrock": ("AWS_REGION_NAME", "AWS_REGION"),
    "vertex_ai": ("VERTEXAI_PROJECT", "VERTEXAI_LOCATION"),
}
_OF_PROVIDERS = r"\w+_(?:API_BASE|BASE_URL|API_VERSION)"
"""Variables that say where LiteLLM asks for models of some provider."""
_KNOWN_AS = {
    "ollama_chat": "OLLAMA", "text-completion-openai": "OPENAI", "custom_openai": "OPENAI", "azure_text": "AZURE",
    "anthropic_text": "ANTHROPIC", "cohere_chat": "COHERE", "fireworks_ai": "FIREWORKS", "huggingface": "HF",
    "vertex_ai": "VERTEXAI",
}  # fmt: skip
"""Providers that LiteLLM also takes the variables of another name for."""
_PASSWORD = r"(?i)(?<=://)([^/@:\s]*):[^@\s]*@|\bpassword=[^\s&]*"
_SECRET = "(a secret)"
_NOTHING_ELSE = rf"(?i)\s*(?:bearer\s+)?(?:{MASK}|\$\{{[^}}]*\}})\s*"
"""A text that is all secret: it is as versions before knew it, which left out more."""
_OF_SECRETS = frozenset({"", "headers", "auth", "env", "env_file", "provider_env"})
"""Mappings of an entry in which a name like `key` or `token` is that of a secret; the first is the entry."""


class Fingerprints:
    """Those of one project; each file is read once. Blocking: use it in threads, also several at once."""

    def __init__(self, config: Config, trust: Trust) -> None:
        self.config = config
        self.root = config.root
        self._trust = trust
        self._files: dict[Path, str] = {}
        self._agents: dict[bytes, dict[str, str]] = {}
        self._imports = Imports(MOST_FILES)
        self._of_settings: dict[str, tuple[set[Path], set[str]]] = {}
        """The files that the settings of each suite name, and the texts that do."""
        self._named: dict[tuple[Path, bool], set[str]] = {}
        """The variables that templates in files name."""
        self._read: dict[bytes, frozenset[str]] = {}
        """The variables that templates of each agent name."""
        self._stood: dict[bytes, list[tuple[Path, int, int, int]]] = {}
        """How the files of an agent stood when `agent_now` read them."""
        # Held while a file is read: an agent's hash without one of its files would find answers of other code.
        self._lock = threading.RLock()

    def agent(self, spec: AgentSpec) -> dict[str, str]:
        """An agent's type, and hashes of its configuration and its files."""
        key = canonical(msgspec.to_builtins(spec, enc_hook=str))
        with self._lock:
            if key not in self._agents:
                self._agents[key] = {
                    "type": spec.type,
                    "config": self.entry(spec),
                    "files": digest(sorted(self._marks(self.files_of_agent(spec)))),
                }
            return self._agents[key]

    def entry(self, spec: AgentSpec) -> str:
        """The hash of an agent's configuration alone: none of its files is read."""
        if (target := _target(spec)) is not None:
            spec = msgspec.structs.replace(spec, options={**spec.options, "target": self.entry(target)})
        return configuration(spec, self._filled(spec), self.root)

    def _filled(self, spec: AgentSpec) -> AgentSpec:
        """The entry with its variables, as it stands where they are not to be read."""
        with contextlib.suppress(ConfigError, NeedsTrust):
            spec = fill(spec, self._asking())
        if spec.type != "neuro-san":
            return spec
        base = spec.base or self.root  # its library reads where networks and tools lie when it is asked
        found = {
            key: os.pathsep.join(os.path.relpath(self.root / one, base) for one in several(place))
            for key, name in _OF_LIBRARY.items()
            if not spec.options.get(key) and (place := os.environ.get(name))
        }
        return msgspec.structs.replace(spec, options={**spec.options, **found}) if found else spec

    def _asking(self) -> Trust:
        """The trust that was given, apart: nobody is asked for more because of a hash."""
        return Trust(self._trust.granted, agreed=self._trust.agreed)

    def with_databases(self, spec: AgentSpec) -> dict[str, str]:
        """As `agent`, with a hash of the databases that its own tools ask: which they are, and what is in
        their files."""
        names = sorted(set(tool_databases(spec)), key=str)
        if not names:
            return self.agent(spec)
        asked = [[name, self.connection(name), self._marks(sorted(self._database(name)))] for name in names]
        return {**self.agent(spec), "databases": digest(asked)}

    def connection(self, name: str | None) -> str:
        """A hash of which database a name stands for, without its password; what is in its files is not in it."""
        spec = database_spec(self.config, name)
        with contextlib.suppress(ConfigError, NeedsTrust):
            spec = database(self.config, name, self._asking())
        if spec is None:
            return ""
        path = os.path.relpath(self.root / spec.path, self.root) if spec.path else ""
        schema = [spec.schema] if spec.schema else []
        return digest(
            [spec.type, path, in_addresses(re.sub(_PASSWORD, r"\1", spec.url)), spec.outside, *schema]
        )

    def agent_now(self, spec: AgentSpec) -> dict[str, str]:
        """As `with_databases`, read again where its files are others than they were: code and data may be edited while
        it is asked."""
        key = canonical(msgspec.to_builtins(spec, enc_hook=str))
        data = (file for name in set(tool_databases(spec)) for file in self._database(name))
        files = [*self.files_of_agent(spec), *sorted(data)]
        stand: list[tuple[Path, int, int, int]] = []
        for path in files:
            with contextlib.suppress(OSError):
                status = path.stat()
                stand.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
        with self._lock:
            if self._stood.get(key) != stand:
                self._agents.pop(key, None)
                self._read.pop(key, None)
                for path in files:
                    self._files.pop(path, None)
                self._stood[key] = stand
            return self.with_databases(spec)

    def reads(self, spec: AgentSpec) -> frozenset[str]:
        """The variables that the templates of a promptfoo provider name when it is asked, also in files; with
        `UNNAMED` where nobody knows which."""
        if not of_templates(spec):
            return frozenset()
        key = canonical(msgspec.to_builtins(spec, enc_hook=str))
        with self._lock:
            if key not in self._read:
                texts = [spec.options, *(text_of(path, self.root) for path in self.files_of_agent(spec))]
                self._read[key] = frozenset(variables_read(texts))
            return self._read[key]

    def read_now(self, spec: AgentSpec, known: Mapping[str, str]) -> str | None:
        """A hash of the values of these, of secrets only that they are named; empty where there are none, None where
        nobody knows which they are.

        Raises:
            NeedsTrust: one may not be read.
        """
        names = self.reads(spec)
        if UNNAMED in names:
            return None
        return (
            digest([[name, _SECRET if _hidden(name) else known.get(name)] for name in sorted(names)])
            if names
            else ""
        )

    def files_of_agent(self, spec: AgentSpec) -> list[Path]:
        """The files an agent is made of: those that its entry names, the code beside these, what lies in its folders,
        and what its code imports, wherever that lies."""
        spec = self._filled(spec)
        base = Path(spec.base or self.root)
        listed = set(_listed_files(spec, base))
        places = program_folders(spec, base)
        options = {
            key: without_written(one) if key == "command" else one for key, one in spec.options.items()
        }
        texts = (path for place in places for path in files_in_texts(options, place, plain=True))
        named = {*texts, *named_files(spec, base)} - listed
        found = {*listed, *with_code(sorted(named)), *folder_files(spec, self.root)}
        if (target := _target(spec)) is not None:
            found.update(self.files_of_agent(target))
        with self._lock:
            found.update(self._imports.of(sorted(found), *places, self.root))
        return sorted(found)

    def variables_of(self, job: Job) -> dict[str, str] | None:
        """Hashes of the variables of the person's environment that a case's templates name, also in files: of secrets,
        and of those that nobody agreed to have read, only that they are named. None: which they read, nobody knows."""
        if not format_of(job.format).templates:
            return {}
        case = job.case
        body = encode_json(case)
        names = set(self.reads(job.spec) if job.spec is not None else ())
        if not names and not MAY_NAME.search(body):
            return {}
        own = "env" in case.vars
        names |= set(variables_read(case, own))
        if b"file:" in body or b"{%" in body:
            for path in question_files(case, job.base, self.root) | verdict_files(case, job.base, self.root):
                with self._lock:
                    if (path, own) not in self._named:
                        self._named[path, own] = set(variables_read(text_of(path, self.root), own))
                    names |= self._named[path, own]
        if UNNAMED in names:
            return None
        return {name: digest(_variable(name) if self._may_know(name) else name) for name in names}

    def _may_know(self, name: str) -> bool:
        return self._asking().covers(variable(name))

    def _marks(self, files: Sequence[Path]) -> list[str]:
        """Of each file its hash; of those beyond the limit by size and time."""
        marks = [self.of(path) for path in files[:_FILE_LIMIT]]
        for path in files[_FILE_LIMIT:]:
            with contextlib.suppress(OSError, ValueError):
                marks.append(digest([os.path.relpath(path, self.root), _stamp(path)]))
        return [mark for mark in marks if mark]

    def of(self, path: Path) -> str:
        """A file's place, from the root, and its content, as one hash; empty where there is none. Of one outside the
        project that nobody agreed to have read, size and time stand for its content: a hash, too, says something."""
        with self._lock:
            if path not in self._files:
                mark = ""
                with contextlib.suppress(OSError, ValueError):
                    known = _content(path.resolve()) if self._may_read(path) else _stamp(path)
                    mark = digest([os.path.relpath(path, self.root), known])
                self._files[path] = mark
            return self._files[path]

    def differs(self, spec: AgentSpec, before: Mapping[str, Any]) -> str:
        """`otherwise` of an agent as it is now. Of files outside the project that are not to be read, size and time are
        another hash than a run had that was allowed more."""
        what = otherwise(before, self.agent(spec))
        if what == FILES and not all(map(self._may_read, self.files_of_agent(spec))):
            what = f"{FILES}, or the trust in those outside the project"
        return what

    def _may_read(self, path: Path) -> bool:
        if inside(self.root, path) or self._trust.granted:
            return True
        return self._asking().covers(f"read {from_root(path, self.root)}")

    def files_of(self, job: Job) -> tuple[dict[str, str], str]:
        """Hashes of the files that a case names in its assertions, variables and options, and that the
        settings of its suite name, with the code beside them, and of its databases, by their paths from the
        root; and a hash of all that names them: as long as it is the same, one that is missing among them is
        gone. Empty where nothing names any."""
        found: dict[str, str] = {}
        of_suite, named = self._named_in_settings(job)
        texts = set(named)
        own = of_suite | case_files(job.case, job.base, self.root, texts)
        if any(map(imports_others, own)):
            with self._lock:
                own.update(self._imports.of(sorted(own), job.base, self.root))
        databases = databases_of(job)
        for path in (*own, *(file for name in databases for file in self._database(name))):
            if mark := self.of(path):
                found[os.path.relpath(path, self.root)] = mark
        if not texts and not databases:
            return found, ""
        names = sorted(name or "" for name in databases)
        return found, digest([os.path.relpath(job.base, self.root), sorted(texts), names])

    def _named_in_settings(self, job: Job) -> tuple[set[Path], set[str]]:
        """What hooks and filters of a suite are made of."""
        if not job.settings:
            return set(), set()
        if job.suite not in self._of_settings:
            texts: set[str] = set()
            named = files_named([job.settings], job.format, job.base, self.root, texts)
            filters = job.settings.get("nunjucksFilters")
            if isinstance(filters, dict):
                texts.update(map(str, filters.values()))
                named.update(files_in_texts(filters, job.base, plain=True))
            self._of_settings[job.suite] = set(with_code(sorted(named))), texts
        return self._of_settings[job.suite]

    def _database(self, name: str | None) -> Iterator[Path]:
        spec = database_spec(self.config, name)
        if spec is None or not spec.path or spec.type not in ("duckdb", "sqlite", "files"):
            return
        if "${" in spec.path:
            with contextlib.suppress(ConfigError, NeedsTrust):
                spec = database(self.config, spec.name, self._asking())
        place = self.root / spec.path
        if os.path.isdir(place):
            yield from _files_in(place)
            return
        # What was written last may stand beside the file still.
        for file in (place, *(place.with_name(place.name + end) for end in ("-wal", ".wal"))):
            if os.path.isfile(file):
                yield file

    def read_by(self, jobs: Sequence[Job]) -> Iterator[Path]:
        """The files that jobs read beside their suites': those of their agents, of their databases, and that their
        cases name. One comes as often as it is named."""
        specs = {job.spec.name: job.spec for job in jobs if job.spec is not None}
        for spec in specs.values():
            yield from self.files_of_agent(spec)
        for name in {name for job in jobs for name in databases_of(job)}:
            yield from self._database(name)
        for job in jobs:
            yield from case_files(job.case, job.base, self.root)

    def of_jobs(self, jobs: Iterable[Job]) -> tuple[dict[str, str], dict[str, str]] | None:
        """Those of all files that cases name, and by what names them (`files_of`) a hash of which these are, both in
        order; None where they are too many."""
        found: dict[str, str] = {}
        sets: dict[str, str] = {}
        for job in jobs:
            files, names = self.files_of(job)
            found.update(files)
            if names:
                sets[names] = digest(sorted(files))
            if len(found) > MOST_FILES or len(sets) > MOST_FILES:
                return None
        return dict(sorted(found.items())), dict(sorted(sets.items()))


class AgentsAsked:
    """Whom cases ask, as `--changed` tells agents apart, without their files: by the configuration and the
    suites' settings that it is made with (a suite's `env` is sent, too, where a prompt names it). `earlier`
    knows of those that cannot be found in these. Blocking: use it in threads."""

    def __init__(
        self,
        config: Config,
        settings: Mapping[str, Mapping[str, Any]],
        trust: Trust,
        earlier: AgentsAsked | None = None,
    ) -> None:
        self._marks = Fingerprints(config, trust)
        self._settings, self._earlier = settings, earlier
        self._resolved: dict[Any, tuple[AgentSpec | None, str]] = {}
        self._known: dict[int, str] = {}

    def of(self, case: Case, named: str = "") -> str:
        """A hash of what decides on the answers of the case's own agent, or of one that was `named` for it; empty where
        there is none."""
        config, env = self._marks.config, self._settings.get(case.suite, {}).get("env")
        if named:
            spec = named_agent(named, config, self._resolved)
        else:
            spec, _ = agent_of(case, config, self._resolved, env)
        if spec is None:
            return self._earlier.of(case, named) if self._earlier is not None else ""
        if id(spec) not in self._known:  # which `_resolved` holds
            self._known[id(spec)] = self._marks.entry(spec)
        sent = env and any("env" in (turn.text or "") for turn in case.turns)
        return digest([self._known[id(spec)], env]) if sent else self._known[id(spec)]


FILES = "its files"
"""What `otherwise` calls them."""


def otherwise(before: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """What of an agent is another than `Fingerprints.agent` said before, for a person; empty: nothing."""
    if now == before:
        return ""
    same = all(now.get(part) == before.get(part) for part in ("type", "config"))
    return FILES if same else "its configuration"


def asks_otherwise(old: Case, new: Case) -> bool:
    """Whether what a case sends is another than it was, so that an answer of before proves nothing: not what is done
    with the answer, nor a variable that only assertions name. Whom it asks is `AgentsAsked`."""
    if _sent(old) != _sent(new):
        return True
    sent = sent_variables(old) | sent_variables(new)
    return any(old.vars.get(name) != new.vars.get(name) for name in sent)


def _sent(case: Case) -> list[Any]:
    """All of it but the variables."""
    turns = [(one.text, one.sly_data, one.chat_filter, one.continue_conversation) for one in case.turns]
    whom = case.agent if case.provider is None else None  # a provider's may be a label
    beside = [case.prompt, case.model, case.connection, case.request_metadata, case.provider_output]
    return [turns, whom, beside, format_of(case.format).sent_around(case)]


def unlisted_data(jobs: Iterable[Job]) -> str:
    """What cannot be seen of agents that are code and list no files, for a person; empty: of these is none."""
    unseen = any(job.spec is not None and job.spec.type in SCRIPTS and not job.spec.files for job in jobs)
    return (
        "data files and environment variables that an agent's code reads count only where `files:` and `variables:` of "
        "its entry list them"
        if unseen
        else ""
    )


def configuration(spec: AgentSpec, filled: AgentSpec, root: Path) -> str:
    """A hash of what decides on an agent's answers in its entry: how fast it is asked, and where the entry stands, do
    not. Of secrets the names count: an answer stays the same when a key is renewed."""
    same = (
        spec.type, without_secrets(spec.model, filled.model, "model"), spec.extraction, os.path.relpath(spec.base or root, root),
        without_secrets(spec.options, filled.options, ""), *map(_variable, spec.variables),
    )  # fmt: skip
    read = {name: in_addresses(value) for name in _read_when_asked(filled) if (value := os.environ.get(name))}
    return digest([same, read] if read else same)


def _target(spec: AgentSpec) -> AgentSpec | None:
    """The agent that one of promptfoo's relaying providers asks, filled in for itself when it does."""
    if spec.type in RELAYS and isinstance(target := spec.options.get("target"), dict):
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(target, AgentSpec)
    return None


def _read_when_asked(spec: AgentSpec) -> list[str]:
    """The variables that say what is asked where the entry does not, and that the agent reads when it is asked."""
    if spec.type == "litellm":
        provider, slash, _ = (spec.model or "").partition("/")
        ends = (*(() if spec.options.get("base_url") else ("API_BASE", "BASE_URL")), "API_VERSION")
        if not slash:  # which provider a bare name is of, LiteLLM says: by lists that change with it
            of_clouds = (name for names in _OF_CLOUDS.values() for name in names)
            return [
                *of_clouds,
                *(name for name in os.environ if re.fullmatch(_OF_PROVIDERS, name) and name.endswith(ends)),
            ]
        names = dict.fromkeys((re.sub(r"\W", "_", provider.upper()), _KNOWN_AS.get(provider, "")))
        return [*_OF_CLOUDS.get(provider, ()), *(f"{name}_{end}" for name in names if name for end in ends)]
    if spec.type == "nao" and not any(spec.options.get(key) for key in ("email", "username", "token")):
        return ["NAO_USERNAME"]  # whose data it answers from
    return [*_READ_BY.get(spec.type, ()), *read_when_asked(spec.type, spec.options)]


def _variable(name: str) -> list[Any]:
    """A variable that the agent's code reads, with its value where that is no secret."""
    if _hidden(name):
        return [name, _SECRET]
    return [name, without_secrets(f"${{{name}}}", os.environ.get(name), "")]


def _hidden(variable: str) -> bool:
    """Whether the value of a variable is a secret by its name, and only that it is named counts."""
    return secret_name(variable) and not no_secret(variable, os.environ.get(variable, ""), strict=True)


def without_secrets(given: Any, filled: Any, name: str, within: str = "") -> Any:
    """A value as it is filled in, of secrets in it the names of their variables; `within` is the name of the
    mapping that it stands in."""
    if isinstance(filled, dict):
        known = given if isinstance(given, dict) else {}
        return {
            key: without_secrets(known.get(key), value, str(key), name)
            for key, value in sorted(filled.items(), key=lambda one: str(one[0]))
        }
    if isinstance(filled, list):
        known = given if isinstance(given, list) and len(given) == len(filled) else [None] * len(filled)
        return [without_secrets(one, value, name, within) for one, value in zip(known, filled, strict=True)]
    variables = variables_in(given) if isinstance(given, str) else []
    strict = within.lower() in _OF_SECRETS
    if not isinstance(filled, str):
        known_by = isinstance(filled, int | float) and not isinstance(filled, bool) and secret_name(name)
        return [_SECRET, variables] if known_by and not no_secret(name, filled, strict) else filled
    # Only the secret is taken out: what stands around it decides on the answers.
    text = with_names(given, _hidden, filled != given) if variables else filled
    kept = without_secret_parts(name, text, strict, literal=not variables)
    if kept != filled and re.fullmatch(_NOTHING_ELSE, kept):
        kept = _SECRET
    return filled if kept == filled else [kept, variables]


def _listed_files(spec: AgentSpec, base: Path) -> Iterator[Path]:
    """Those of `files:` with what lies in its folders."""
    for name in spec.files:
        place = base / name
        yield from _files_in(place) if os.path.isdir(place) else [place] if os.path.isfile(place) else []


def _files_in(folder: Path) -> Iterator[Path]:
    return (entry for entry in islice(folder.rglob("*"), IN_FOLDERS) if os.path.isfile(entry))


def _content(path: Path) -> str:
    if path.stat().st_size > LARGEST:
        return _stamp(path)
    return hashlib.sha256(read_plain(path, LARGEST)).hexdigest()


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def digest(value: Any) -> str:
    """A hash of any value, the same for equal ones."""
    try:
        body = msgspec.json.encode(value, enc_hook=str, order="deterministic")
    except (TypeError, ValueError, RecursionError):  # a name that is no UTF-8, keys of several types
        body = canonical(msgspec.to_builtins(value, enc_hook=str))
    return hashlib.sha256(body).hexdigest()[:16]
