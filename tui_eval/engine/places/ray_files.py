"""What of a project is sent to the machines of a cluster: one zip file, which Ray takes to each of them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tui_eval.config.project import Config
from tui_eval.guard.secrets import Masker

LARGEST = 200 * 2**20
"""Bytes of files that are sent at most; Ray keeps them in its head's memory."""
_FOLDERS = frozenset({".git", ".tui-eval", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox"})
_MARK = "pyvenv.cfg"
_LOOKED_AT = 2**20
"""Bytes of a file in which secrets are looked for."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class SentFiles:
    """The zip file, and what it holds in words for a person."""

    file: Path
    words: str


def packed_project(config: Config, masker: Masker, folder: Path) -> SentFiles:
    """The project's files in a zip file in `folder`. Left out are version control, the store, `.env` files and
    `tui_eval.yaml` (workers have its contents in memory), environments, links that lead out of the project, and files
    that hold a secret that is known. Blocking.

    Raises:
        OSError: they are too much, or cannot be read.
    """
    root, total, count = config.root, 0, 0
    secret: list[str] = []
    target = folder / "project.zip"
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
        for path in _files(root, config.file):
            name = str(path.relative_to(root))
            size = path.stat().st_size
            total += size
            top = name.partition("/")[0]
            sizes[top] = sizes.get(top, 0) + size
            if total > LARGEST:
                most = sorted(sizes, key=lambda one: -sizes[one])[:3]
                raise OSError(
                    f"they are more than {LARGEST // 2**20} MB (most of it in {', '.join(most)}); put the project on a "
                    "folder that all machines share, and say `run: {files: shared}` in tui_eval.yaml"
                )
            body = path.read_bytes()
            if masker and len(body) <= _LOOKED_AT:
                text = body.decode("utf-8", "replace")
                if masker.text(text) != text:
                    secret.append(name)
                    continue
            # The same files make the same package, which Ray then has already.
            info = zipfile.ZipInfo(name, _EARLIEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (path.stat().st_mode & 0o777) << 16
            package.writestr(info, body)
            count += 1
        if not count:
            package.writestr(".tui-eval-project", "")
    said = f"ray: {count:,} files of {root} are sent ({target.stat().st_size / 2**20:.1f} MB packed), without .git, .tui-eval, .env*, environments and tui_eval.yaml"
    if secret:
        said += f"; left out, for a secret in them: {', '.join(secret[:5])}{' …' if len(secret) > 5 else ''}"
    return SentFiles(target, said)


def _files(root: Path, configuration: Path | None) -> Iterator[Path]:
    real = os.path.realpath(root)
    for where, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOLDERS and not os.path.lexists(os.path.join(where, name, _MARK))
        )
        for name in sorted(names):
            path = Path(where, name)
            target = os.path.realpath(path)
            if (
                name.startswith(".env")
                or path == configuration
                or not path.is_file()
                or not target.startswith(real.rstrip(os.sep) + os.sep)
            ):
                continue
            yield path
