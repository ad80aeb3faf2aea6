"""People's Python files as modules, and which files were loaded; imported only by `python_worker`, from its own
folder."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from python_worker_answers import Refused


class Modules:
    """The files that functions are called of, loaded once each. Usable from any thread."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """`folders`: what is loaded from below them is the person's own, and followed."""
        self._folders = folders
        self._loading = threading.Lock()
        self._modules: dict[str, Any] = {}
        self._reported: dict[str, list[int]] = {}
        self._told = 0
        self._seen_modules = 0

    def find(self, file: Path, name: str) -> Callable[..., Any]:
        """A function of a file, `Class.method` too; loads the file where that has not been done.

        Raises:
            Refused: no such file, or no such function.
        """
        with self._loading:
            module = self._modules.get(str(file)) or self._load(file)
        function: Any = module
        for part in name.split("."):
            function = getattr(function, part, None)
        if not callable(function):
            there = [key for key, item in vars(module).items() if inspect.isfunction(item) and key[0] != "_"]
            known = f" (there is: {', '.join(there[:10])})" if there else ""
            raise Refused(f"{file.name} has no function {name!r}{known}")
        return function

    def _load(self, file: Path) -> Any:
        try:
            self._report(file)
            source = file.read_bytes()
        except OSError as error:
            raise Refused(f"{file}: {error.strerror}") from None
        package = _package(file)
        whole = file.name == "__init__.py"  # a package: what it imports of itself is below its own name
        stem = file.parent.name if whole else file.stem
        name = package + stem
        if whole and _is_found(name, file):
            self._modules[str(file)] = module = importlib.import_module(name)
            return module
        if name in sys.modules or whole:
            # An imported module of the same name (queue.py, agent.py elsewhere) must stay what it is.
            name = f"{package}_tui_eval_{len(self._modules)}_{stem}"
        below = [str(file.parent)] if whole else None
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=below)
        if spec is None:
            spec = importlib.machinery.ModuleSpec(name, None, origin=str(file))
        module = importlib.util.module_from_spec(spec)
        module.__file__ = str(file)
        sys.modules[name] = module
        try:
            # Compiled here and never from a cache: an edit within the same second must count.
            exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        if package and (parent := sys.modules.get(package[:-1])) is not None:
            setattr(
                parent, name.removeprefix(package), module
            )  # as an import does: `import pkg.agent` finds it there
        self._modules[str(file)] = module
        return module

    def _report(self, file: Path) -> None:
        status = file.stat()
        self._reported.setdefault(str(file), [status.st_mtime_ns, status.st_size])

    def followed(self) -> dict[str, Any]:
        """The files loaded so far from below the project's folder, as they were when loaded;
        nothing where the host knows them already."""
        if len(sys.modules) != self._seen_modules:
            self._seen_modules = len(sys.modules)
            for module in list(sys.modules.values()):
                file = getattr(module, "__file__", None)
                if isinstance(file, str) and file not in self._reported and "site-packages" not in file:
                    path = Path(file)
                    if any(path.is_relative_to(folder) for folder in self._folders):
                        try:
                            self._report(path)
                        except OSError:
                            continue
        if len(self._reported) == self._told:
            return {}
        self._told = len(self._reported)
        return {"files": self._reported}


def _package(file: Path) -> str:
    """The package that a file is part of, imported, with a dot at its end; so relative imports work.

    As with pytest, a folder is a package where it has an `__init__.py`.
    """
    names: list[str] = []
    whole = file.name == "__init__.py"
    inside = folder = file.parent.parent if whole else file.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    if (names or whole) and str(folder) not in sys.path:
        sys.path.append(str(folder))
    if not names:
        return ""
    package = importlib.import_module(".".join(names))
    # Another package of that name may come first on the path: then the file stands alone.
    return f"{package.__name__}." if str(inside) in getattr(package, "__path__", ()) else ""


def _is_found(name: str, file: Path) -> bool:
    """Whether Python finds this file by that name: its modules are then the same as those that others import."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin == str(file)
