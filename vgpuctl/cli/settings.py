"""What the shared options, the environment and the config file amount to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vgpuctl.model.problem import Exit, Problem

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


@dataclass(frozen=True)
class Settings:
    """The shared options after merging; "" and False mean not given. request_timeout: seconds, 0 for none."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    as_user: str = ""
    as_group: tuple[str, ...] = ()
    namespace: str = ""
    all_namespaces: bool = False
    selector: str = ""
    request_timeout: float = 10.0
    bundle: str = ""
    demo: bool = False
    local: bool = False
    root: str = ""
    output: str = ""
    ascii: bool = False
    fail_on: str = field(default="error")

    def with_form(self, default: str) -> Settings:
        """The same settings with the form of output filled in."""
        return self if self.output else replace(self, output=default)


def settings_from(before: Mapping[str, Any], after: Mapping[str, Any]) -> Settings:
    """Merges the options before and after the command with the environment and the config file.

    Raises Problem (wrong use) for a value that cannot be understood, naming where it stands.
    """
    values: dict[str, Any] = {}
    from_file = _config_file()
    for option in fields(Settings):
        given = after.get(option.name)
        if given is None or given == []:
            given = before.get(option.name)
        place = f"--{option.name.replace('_', '-')}"
        if given is None or given == []:
            variable = f"VGPUCTL_{option.name.upper()}"
            given, place = os.environ.get(variable), variable
        if given is None and option.name in from_file:
            given, place = from_file[option.name], f"{_config_path()}: {option.name}"
        if given is not None:
            values[option.name] = _convert(option.name, option.type, given, place)
    settings = Settings(**values)
    if settings.fail_on not in ("error", "warn"):
        raise _wrong("--fail-on", settings.fail_on, "error or warn")
    chosen = [
        flag for flag, on in (("--demo", settings.demo), ("--local", settings.local), ("--from", settings.bundle)) if on
    ]
    if len(chosen) > 1:
        raise Problem(f"{' and '.join(chosen)} name two sources", remedy="give one of them", exit_code=Exit.USAGE)
    return settings


def seconds(text: str, place: str) -> float:
    """A time such as 10s, 500ms or 1m, in seconds. Raises Problem (wrong use), naming the place."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise _wrong(place, text, "a time such as 10s, 500ms or 1m")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def _convert(name: str, kind: Any, value: Any, place: str) -> Any:
    if name == "request_timeout":
        return seconds(str(value), place)
    if kind == "bool":
        word = str(value).strip().lower()
        if word not in _TRUE | _FALSE:
            raise _wrong(place, value, "true or false")
        return word in _TRUE
    if kind == "tuple[str, ...]":
        return tuple(value.split(",")) if isinstance(value, str) else tuple(str(part) for part in value)
    return str(value)


def _wrong(place: str, value: object, wanted: str) -> Problem:
    return Problem(f"{place}: {value!r} is not understood", remedy=f"write {wanted}", exit_code=Exit.USAGE)


def _config_path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "vgpuctl" / "config.yaml"


def _config_file() -> dict[str, Any]:
    """The defaults of the user's config file: a mapping from option names (dashes allowed) to values."""
    path = _config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Problem(f"cannot read {path}", str(error.strerror), exit_code=Exit.USAGE) from None
    import yaml

    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise Problem(f"{path} is not YAML", str(error), exit_code=Exit.USAGE) from None
    known = {option.name for option in fields(Settings)}
    values = (
        {str(key).replace("-", "_"): value for key, value in content.items()} if isinstance(content, dict) else None
    )
    unknown = sorted(set(values or ()) - known)
    if values is None or unknown:
        what = f"{path}: {unknown[0]} is not an option" if unknown else f"{path} is not a mapping"
        raise Problem(what, remedy=f"known: {', '.join(sorted(known))}", exit_code=Exit.USAGE)
    return values
