"""The project's files as they are sent to the machines of a cluster: which these are, what is kept back, and
why; and as a machine has them, in another folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tui_eval.config.config_schema import CONFIG_NAME
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.places.attempt_place import Made
from tui_eval.engine.places.ray_messages import MANIFEST, SENT_IN, SentFolder, text_of
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import Trust

LARGEST = 200 * 2**20
"""Bytes of files that are sent at most; Ray keeps them in its head's memory."""
_FOLDERS = frozenset({".git", ".tui-eval", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox"})
_OWN_FOLDERS = frozenset({".git", ".tui-eval", ".hg", ".svn"})
"""Folders of which no link brings a file along either."""
_MARK = "pyvenv.cfg"
_DECODED = 2**20
"""Bytes of a file that is read as a text; in what is larger secrets are looked for as bytes."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class SentFiles:
    """The zip file, what it holds in words for a person, and what was left out for a secret in it."""

    file: Path
    words: str
    left_out: list[str]


def check_size(config: Config) -> None:
    """Say before anything is made that the project is too large to be sent. Blocking.

    Raises:
        ConfigError: one line that says what to do.
    """
    try:
        for _ in _sent_files(config):
            pass
    except OSError as error:
        raise ConfigError(f"the project's files cannot be sent to a cluster: {error}") from None


def check_agents(config: Config, trust: Trust, masker: Masker, agents: Iterable[AgentSpec]) -> None:
    """Say before anything is made that a file of one of these agents would not be sent, for a secret in it. Blocking.

    Raises:
        ConfigError: one line that says what to do.
    """
    marks = Fingerprints(config, trust)
    for spec in agents:
        for path in marks.files_of_agent(spec):
            real = os.path.realpath(path)
            with suppress(OSError):
                size = os.stat(real).st_size
                if size > LARGEST or not _has_secret(Path(real).read_bytes(), masker):
                    continue
                if real in map(os.path.realpath, _files(config.root, config.file)):
                    raise ConfigError(
                        f"agents.{spec.name}: {os.path.relpath(real, os.path.realpath(config.root))} is not sent to a cluster: "
                        "a secret stands in it; have it read the secret from its environment variable, which workers get, "
                        "or say `run: {files: shared}` where all machines have the project's folder"
                    )


def packed_project(config: Config, masker: Masker, folder: Path) -> SentFiles:
    """The project's files in a zip file in `folder`. Left out are version control, the store, `.env` files
    and `tui_eval.yaml` (workers have its contents in memory), environments, links that lead out of the
    project or to one of these, and files that hold a secret that is known. Blocking.

    Raises:
        OSError: they are too much, or cannot be read.
    """
    root = config.root
    sent = SentFolder()
    secret: list[str] = []
    target = folder / "project.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
        for path in _sent_files(config):
            name = str(path.relative_to(root))
            body = path.read_bytes()
            if _has_secret(body, masker):
                secret.append(os.fsencode(name).decode("utf-8", "replace"))
                continue
            known = name
            if _UNPACKED_BY_NOBODY.search(name):
                known = f"{MANIFEST}-{len(sent.names)}"
                sent.names[known] = text_of(name)
            # The same files make the same package, which Ray then has already.
            info = zipfile.ZipInfo(f"{SENT_IN}/{known}", _EARLIEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (path.stat().st_mode & 0o777) << 16
            package.writestr(info, body)
            sent.sizes[known] = len(body)
        _add_folders(sent, root)
        package.writestr(zipfile.ZipInfo(f"{SENT_IN}/{MANIFEST}", _EARLIEST), msgspec.json.encode(sent))
    count, size = len(sent.sizes), target.stat().st_size / 2**20
    said = f"ray: {count:,} {'file of' if count == 1 else 'files of'} {root} {'is' if count == 1 else 'are'} sent ({size:.1f} MB packed), without .git, .tui-eval, .env*, environments, node_modules and tui_eval.yaml"
    if secret:
        said += f"; left out, for a secret in them: {', '.join(secret[:5])}{' …' if len(secret) > 5 else ''}"
    return SentFiles(target, said, secret)


_UNPACKED_BY_NOBODY = re.compile(r"[\\\ud800-\udfff]|^[^/]:")
"""In a name: bytes that are no UTF-8, which no zip file takes, and what Ray passes over (Windows' separator
and drives)."""


def _add_folders(sent: SentFolder, root: Path) -> None:
    """Folders without a file that is sent, and links to folders."""
    real = os.path.realpath(root)
    filled = {os.path.dirname(name) for name in sent.sizes}
    for where, folders, _ in _walked(root):
        name = os.path.relpath(where, root)
        if name not in filled and name != os.curdir:
            sent.folders.append(text_of(name))
        for link in filter(os.path.islink, (os.path.join(where, folder) for folder in folders)):
            target = os.path.realpath(link)
            if _is_sent(target, real, None) or target == real:
                leads = os.path.relpath(target, os.path.realpath(where))
                sent.links[text_of(os.path.relpath(link, root))] = text_of(leads)


def _has_secret(body: bytes, masker: Masker) -> bool:
    if not masker:
        return False
    if len(body) > _DECODED:
        return masker.stands_in(body)
    text = body.decode("utf-8", "replace")
    return masker.text(text) != text or masker.stands_in(body)


def _sent_files(config: Config) -> Iterator[Path]:
    """The files; raises `OSError` where they are too much."""
    total, sizes = 0, Counter[str]()
    for path in _files(config.root, config.file):
        size = path.stat().st_size
        total += size
        sizes[path.relative_to(config.root).parts[0]] += size
        if total > LARGEST:
            most = ", ".join(name for name, own in sizes.most_common(3) if own * 20 > total)
            raise OSError(
                f"they are more than {LARGEST // 2**20} MB (most of it in {most}); put the project on a "
                "folder that all machines share, and say `run: {files: shared}` in tui_eval.yaml"
            )
        yield path


def _walked(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """The folders that are sent, each with the folders in it (links to some, too) and the names of files, in order."""
    for where, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOLDERS and not os.path.lexists(os.path.join(where, name, _MARK))
        )
        yield where, folders, sorted(names)


def _files(root: Path, configuration: Path | None) -> Iterator[Path]:
    real = os.path.realpath(root)
    its_own = configuration and os.path.realpath(configuration)
    for where, _, names in _walked(root):
        for name in names:
            path = Path(where, name)
            target = os.path.realpath(path)
            if _is_sent(str(path), str(root), its_own) and _is_sent(target, real, its_own) and path.is_file():
                yield path


def _is_sent(path: str, root: str, configuration: str | None) -> bool:
    """Whether a file, or what a link leads to, is below the root and none of what is kept back."""
    name = os.path.basename(path)
    if name.startswith(".env") or name == CONFIG_NAME or path == configuration:
        return False
    below = root.rstrip(os.sep) + os.sep
    return path.startswith(below) and _OWN_FOLDERS.isdisjoint(path[len(below) :].split(os.sep))


_OWN = "tui-eval-"
_PATIENCE = 30.0
"""Seconds for the project's files to be whole, while Ray unpacks them anew."""


class OwnFiles:
    """The project's files in a folder that Ray does not know, beside the one it unpacks them to, and shared by a run's
    workers on a machine. Ray's own is not safe: of several nodes on one machine each that comes takes it away and
    unpacks it anew. It goes with its last worker; what killed ones leave goes with the next that begins. Blocking."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._held = -1

    def take(self) -> tuple[Path, Path]:
        """Go there; Ray's folder, and this one.

        Raises:
            OSError: they do not become whole.
        """
        ends = time.monotonic() + _PATIENCE
        while True:
            try:
                given = _given_folder()
                name = hashlib.sha256(f"{self._run_id}\n{given.name}".encode()).hexdigest()[:16]
                self._folder = given.parent / f"{_OWN}{name}"
                if not self._folder.is_dir():
                    with _locked(given, fcntl.LOCK_EX):  # one copies, the others wait for that
                        if not self._folder.is_dir():
                            self._copy(given)
                self._hold()
                os.chdir(self._folder)
                break
            except OSError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.1)
        for other in given.parent.glob(f"{_OWN}*"):
            if other != self._folder:
                _remove_unheld(other)
        return given, self._folder

    def there(self) -> bool:
        """Whether they are still where they were."""
        with suppress(OSError):
            return os.path.samestat(os.stat(self._folder), os.fstat(self._held))
        return False

    def leave(self) -> None:
        """Have done with them."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
            _remove_unheld(self._folder)

    def _copy(self, given: Path) -> None:
        part = Path(tempfile.mkdtemp(prefix=f"{_OWN}part-", dir=given.parent))
        with _locked(part, fcntl.LOCK_SH):
            try:
                shutil.copytree(given / SENT_IN, part, dirs_exist_ok=True)
                sent = msgspec.json.decode((part / MANIFEST).read_bytes(), type=SentFolder)
                if any((part / name).stat().st_size != size for name, size in sent.sizes.items()):
                    raise OSError("some are not yet there")
                (part / MANIFEST).unlink()
                sent.complete(part)
                part.rename(self._folder)
            except (OSError, msgspec.DecodeError) as error:
                shutil.rmtree(part, ignore_errors=True)
                if not self._folder.is_dir():  # else another worker was first
                    raise OSError(f"the project's files are not whole in {given}: {error}") from None

    def _hold(self) -> None:
        held = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            if not os.path.samestat(os.stat(self._folder), os.fstat(held)):
                raise OSError("taken away meanwhile")
        except OSError:
            os.close(held)
            raise
        self._held = held


def _given_folder() -> Path:
    """Where Ray has unpacked what was sent: the folder that it starts workers in, by its name where it has been taken
    away since."""
    with suppress(FileNotFoundError):
        return Path.cwd()
    return Path(os.environ.get("PYTHONPATH", "").partition(os.pathsep)[0])


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _remove_unheld(folder: Path) -> None:
    """Take a folder of workers away, unless one is there."""
    with suppress(OSError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
        shutil.rmtree(folder, ignore_errors=True)


T = TypeVar("T")


def moved(value: T, old: str, new: str) -> T:
    """The value with paths of and below the folder `old` as ones of `new`: those that are paths, and texts that begin
    as one. Nothing else of a text is looked at: what is said to an agent stays."""
    return _moved(value, old, new)


def _moved(value: Any, old: str, new: str) -> Any:
    match value:
        case str():
            return moved_text(value, old, new)
        case Path():
            text = str(value)
            changed = moved_text(text, old, new)
            return value if changed is text else Path(changed)
        case dict():
            return {_moved(key, old, new): _moved(item, old, new) for key, item in value.items()}
        case list():
            return [_moved(item, old, new) for item in value]
        case tuple():
            return tuple(_moved(item, old, new) for item in value)
        case msgspec.Struct():
            changes = {}
            for name in value.__struct_fields__:
                item = getattr(value, name)
                if (changed := _moved(item, old, new)) is not item:
                    changes[name] = changed
            return msgspec.structs.replace(value, **changes) if changes else value
        case _:
            return value


def moved_text(text: str, old: str, new: str) -> str:
    """The same of one text."""
    scheme = "file://" if text.startswith("file://") else ""
    if not text.startswith(old, len(scheme)):
        return text
    rest = text[len(scheme) + len(old) :]
    return f"{scheme}{new}{rest}" if not rest or rest[0] in "/:" else text


def explained(made: Made, left_out: Sequence[str]) -> Made:
    """Of an error that names a file which is not there since it was not sent, that first: here it exists."""
    attempt = made.attempt
    error = attempt.error or ""
    missing = next((name for name in left_out if is_about(error, name)), None) if error else None
    if missing is None:
        return made
    why = f"{missing} was not sent to the cluster: a secret stands in it"
    evidence = [  # by its words lists, tables and groups name the cause
        msgspec.structs.replace(one, text=f"{why} ({one.text})") if is_about(one.text, missing) else one
        for one in attempt.evidence or ()
    ]
    message = f"{why} ({attempt.message})"
    return Made(
        msgspec.structs.replace(attempt, error=f"{why} ({error})", message=message, evidence=evidence)
    )


def is_about(error: str, file: str) -> bool:
    """Whether an error is about a file, or the module that it is."""
    if re.search(rf"(?<![\w.-]){re.escape(Path(file).name)}(?![\w-])", error):
        return True
    module = re.search(r"No module named '(?:[\w.]+\.)?(\w+)'", error)
    return module is not None and file.endswith(".py") and Path(file).stem == module[1]
