"""Variables whose value is `file://…`: read, or made by people's code, for each attempt
(formats/promptfoo.md 7.2)."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.extensions import adding
from tui_eval.formats.format import RenderError
from tui_eval.formats.promptfoo.read.promptfoo_types import IMAGES, JAVASCRIPT, MEDIA
from tui_eval.formats.promptfoo.read.suite_file import brief
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import Trust, script
from tui_eval.javascript import values as js
from tui_eval.javascript.values import FileList, FileValue
from tui_eval.model import Compat
from tui_eval.nunjucks.prompt_templates import StoredAnswer, retold
from tui_eval.nunjucks.templates import flag
from tui_eval.yaml import yaml_lines

if TYPE_CHECKING:
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that can be a variable."""

FUNCTION_TIME = 60.0
"""Seconds that a function may take to make a variable or a prompt."""

_DOUBLED = re.compile(r"data:[\w.+-]{1,60}/[\w.+-]{1,60};base64,(?=data:[\w.+-]{1,60}/[\w.+-]{1,60};base64,)")


def kind_of(value: Any) -> str:
    """What a variable of a case names: `code`, `file` or, where it is no `file://`, ``."""
    if not (isinstance(value, str) and value.startswith("file://")) or isinstance(value, StoredAnswer):
        return ""
    return "code" if _ending(value) in JAVASCRIPT | {"py"} else "file"


def loaded(name: str, value: Any, base: Path, root: Path, trust: Trust, compat: Compat = "documented") -> Any:
    """A `file://` variable as what the file holds; any other value as it is.

    With `compat: reference` JSON is its text and YAML compact JSON, without keys to be addressed.

    Raises:
        RenderError: it is missing, too large, unreadable, or made by code (see `with_code`).
        NeedsTrust: it is outside the root.
    """
    kind = kind_of(value)
    if not kind:
        return value
    plain = value[len("file://") :].strip()
    if kind == "code":
        raise RenderError(f"{name}: {plain} was not run")
    ending = _ending(value)
    if ending == "pdf" and not flag("PROMPTFOO_DISABLE_PDF_AS_TEXT"):
        return _pdf(name, plain, base, root, trust)
    if ending in MEDIA and not flag("PROMPTFOO_DISABLE_MULTIMEDIA_AS_BASE64"):
        return _media(name, plain, ending, _bytes(name, plain, base, root, trust))
    found = file_value(name, plain, base, root, trust)
    return found.handed if compat == "reference" and not isinstance(found, str) else found


def file_value(name: str, plain: str, base: Path, root: Path, trust: Trust) -> Any:
    """The text of a file, trimmed; YAML and JSON also answer `{{name.key}}` and `{{name[0]}}`. Code gets the text, as
    all gets it in promptfoo: of YAML the same as compact JSON.

    Raises:
        RenderError: it is missing, too large or not text.
        NeedsTrust: it is outside the root.
    """
    try:
        text = _bytes(name, plain, base, root, trust).decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise RenderError(f"{name}: {plain} is not UTF-8 text") from None
    if not plain.lower().endswith((".yaml", ".yml", ".json")):
        return text
    document = yaml_lines.load(text, plain, core=True)
    if document.misread:
        raise RenderError(f"{name}: {document.misread[0].problem}")
    value = document.value
    if not isinstance(value, dict | list):
        return text
    given = text if plain.lower().endswith(".json") else js.json_text(value)
    return FileValue(text, value, given) if isinstance(value, dict) else FileList(text, value, given)


async def with_code(
    given: Mapping[str, Any],
    prompt: str,
    provider: Mapping[str, Any],
    base: Path,
    root: Path,
    trust: Trust,
    python: PythonHost,
    node: NodeHost,
) -> dict[str, Any]:
    """The variables with those made by code in place, one after the other.

    A `.py` file's `get_var(name, prompt, vars)`, or what a JavaScript file exports, called with
    `(name, prompt, vars, provider)`, returns `{output}` or `{error}`; Python's output is text.

    Raises:
        RenderError: it fails or returns neither.
        NeedsTrust: the folder is not trusted.
    """
    from tui_eval.scripting.script_host import ScriptError, held

    result, seen = dict(given), dict(given)
    for name, value in given.items():
        if kind_of(value) == "file":
            # Code sees the variables before its own as they are filled in.
            seen[name] = loaded(name, value, base, root, trust, "reference")
        if kind_of(value) != "code":
            continue
        plain = value[len("file://") :].strip()
        trust.require(script(base / plain, root))
        file = _path(name, plain, base, root, trust)
        try:
            if file.suffix == ".py":
                arguments = [name, prompt, seen]
                answer = held((await python.call(file, "get_var", arguments, timeout=FUNCTION_TIME)).value)
            else:
                arguments = [name, prompt, seen, dict(provider)]
                answer = (await node.call(file, "", arguments, timeout=FUNCTION_TIME, cwd=base)).value
        except ScriptError as error:
            raise RenderError(f"{name}: {file.name}: {error}") from None
        result[name] = seen[name] = retold(_output(name, file, answer), result)
    return result


def undoubled(prompt: str) -> str:
    """A prompt whose `data:…;base64,` before an image's own is dropped (seed 002 writes both)."""
    return _DOUBLED.sub("", prompt) if ";base64,data:" in prompt else prompt


def _output(name: str, file: Path, answer: Any) -> Any:
    if isinstance(answer, dict) and answer.get("error"):
        raise RenderError(f"{name}: {file.name}: {' '.join(str(answer['error']).split())}")
    output = answer.get("output") if isinstance(answer, dict) else None
    if not js.truthy(output):
        raise RenderError(f"{name}: {file.name} must return {{output}} or {{error}}")
    if file.suffix != ".py":
        return output
    if not isinstance(output, str):
        raise RenderError(f"{name}: {file.name}: output must be text, not {brief(output)}")
    return output.strip()


def _ending(value: str) -> str:
    return value.rpartition(".")[2].strip().lower()


def _path(name: str, plain: str, base: Path, root: Path, trust: Trust) -> Path:
    try:
        path = confine(root, plain, trust, base)
        if not path.is_file():
            raise RenderError(f"{name}: there is no file {plain}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise RenderError(f"{name}: {plain}: {reason}") from None
    return path


def _bytes(name: str, plain: str, base: Path, root: Path, trust: Trust) -> bytes:
    path = _path(name, plain, base, root, trust)
    try:
        if path.stat().st_size > LARGEST:
            raise RenderError(f"{name}: {plain} is larger than {LARGEST // 2**20} MB")
        return path.read_bytes()
    except OSError as error:
        raise RenderError(f"{name}: {plain}: {error.strerror or error}") from None


def _media(name: str, plain: str, ending: str, data: bytes) -> str:
    """Sound and video as bare base64, images with the prefix that says what they are."""
    text = base64.b64encode(data).decode("ascii")
    return f"data:{IMAGES[ending]};base64,{text}" if ending in IMAGES else text


def _pdf(name: str, plain: str, base: Path, root: Path, trust: Trust) -> str:
    try:
        import pypdf
    except ImportError:
        raise RenderError(f"{name}: reading {plain} needs the extra pdf: {adding('pdf')}") from None
    path = _path(name, plain, base, root, trust)
    try:
        if path.stat().st_size > LARGEST:
            raise RenderError(f"{name}: {plain} is larger than {LARGEST // 2**20} MB")
        pages = [page.extract_text() for page in pypdf.PdfReader(path).pages]
    except RenderError:
        raise
    except Exception as error:  # a damaged PDF raises nearly anything
        raise RenderError(f"{name}: {plain} cannot be read as PDF: {' '.join(str(error).split())}") from None
    return "\n".join(pages).strip()
