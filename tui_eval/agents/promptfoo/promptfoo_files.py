"""Files that the settings of a promptfoo HTTP provider name, relative to the suite's folder."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

from tui_eval.agents.base import Services
from tui_eval.agents.entry_options import names_code
from tui_eval.agents.loose_json import decode, one_line
from tui_eval.config.project import ConfigError
from tui_eval.guard.paths import confine, read_file


class SettingsFiles:
    """Reads what the settings at `where` name; outside the root that needs trust."""

    def __init__(self, services: Services, base: Path, where: str) -> None:
        self._services = services
        self._base = base
        self.where = where

    def data(self, file: str, key: str) -> bytes:
        """The bytes of a file.

        Raises:
            ConfigError: it cannot be read; the line names the key.
            NeedsTrust: it lies outside the root.
        """
        try:
            path = confine(
                self._services.root, file.removeprefix("file://"), self._services.trust, self._base
            )
            return read_file(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"{self.where}.{key}: {file}: {reason}") from None

    def text(self, file: str, key: str) -> str:
        """The text of a file (UTF-8). Raises as `data`."""
        try:
            return self.data(file, key).decode("utf-8")
        except UnicodeDecodeError:
            raise ConfigError(f"{self.where}.{key}: {file}: it is not UTF-8 text") from None

    def unpacked(self, text: str, key: str) -> bytes:
        """The bytes of a text in base64.

        Raises:
            ConfigError: it is none.
        """
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"{self.where}.{key}: it is not base64") from None

    def filled_in(self, value: Any, key: str) -> Any:
        """A value with every `file://…` in it replaced by what the file holds: JSON and YAML (1.2) as values, else
        text. Raises as `data`."""
        if isinstance(value, dict):
            return {name: self.filled_in(item, key) for name, item in value.items()}
        if isinstance(value, list):
            return [self.filled_in(item, key) for item in value]
        if not isinstance(value, str) or not value.startswith("file://") or names_code(value):
            return value
        text, name = self.text(value, key), value.lower()
        try:
            if name.endswith(".json"):
                return decode(text)
            if name.endswith((".yaml", ".yml")):
                from tui_eval.yaml.yaml_lines import load

                read = load(text, value, core=True)
                if read.problems:
                    raise ValueError(str(read.problems[0]))
                return read.value
        except ValueError as error:
            raise ConfigError(f"{self.where}.{key}: {value}: {one_line(str(error), 120)}") from None
        return text
