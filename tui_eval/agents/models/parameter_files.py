"""Parameters of a model that stand in files: `tools: file://tools.json`, `response_format: file://…`."""

from __future__ import annotations

from typing import Any

from tui_eval.agents.entry_options import Options

_KEYS = ("tools", "tool_choice", "functions", "response_format", "output_format", "schema")


def loaded(options: Options, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters, those in files (JSON or YAML) read.

    Raises:
        ConfigError: a file cannot be read.
        NeedsTrust: it lies outside the root.
    """
    wanted = [
        key for key in _KEYS if isinstance(value := parameters.get(key), str) and value.startswith("file://")
    ]
    if not wanted:
        return parameters
    import yaml

    result = dict(parameters)
    for key in wanted:
        path = options.path(str(parameters[key]).removeprefix("file://"), f"parameters.{key}")
        try:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            result[key] = yaml.load(path.read_text("utf-8"), Loader=loader)  # JSON is YAML
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise options.error(f"parameters.{key}", f"cannot read {path.name}: {reason}") from None
    return result
