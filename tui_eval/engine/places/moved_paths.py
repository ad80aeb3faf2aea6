"""A project that lies elsewhere on another machine: what names its root by an absolute path names the other place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def moved(value: T, old: str, new: str) -> T:
    """The value with paths of and below the folder `old` as ones of `new`: those that are paths, and texts that begin
    as one. Nothing else of a text is looked at: what is said to an agent stays."""
    return _moved(value, old, new)


def _moved(value: Any, old: str, new: str) -> Any:
    match value:
        case str():
            return _text(value, old, new)
        case Path():
            text = str(value)
            changed = _text(text, old, new)
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


def _text(text: str, old: str, new: str) -> str:
    scheme = "file://" if text.startswith("file://") else ""
    if not text.startswith(old, len(scheme)):
        return text
    rest = text[len(scheme) + len(old) :]
    return f"{scheme}{new}{rest}" if not rest or rest[0] in "/:" else text
