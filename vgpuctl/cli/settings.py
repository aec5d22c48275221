"""What the shared options, the environment and the config file amount to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vgpuctl.model.problem import Exit, Problem

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_KEYWORDS = {"as_user": "as", "bundle": "from"}
"""Options whose own names Python keeps for itself."""
_LONGEST = 1e9
"""Seconds, some thirty years: what sockets and clocks can still count with."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


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


def settings_from(before: Mapping[str, Any], after: Mapping[str, Any], forms: Sequence[str] = ()) -> Settings:
    """Merges the options before and after the command with the environment and the config file.

    forms: the forms of output that the command knows. One that it does not know is wrong use where it was given as
    an option; as a default, which is for all commands, it leaves the command its own.
    Raises Problem (wrong use) for a value that cannot be understood, naming where it stands.
    """
    values: dict[str, Any] = {}
    from_file = _config_file()
    for option in fields(Settings):
        name = _flag(option.name)
        given = next((side[option.name] for side in (after, before) if side.get(option.name) not in (None, [])), None)
        if given is not None:
            values[option.name] = _convert(option.name, option.type, given, f"--{name}")
            continue
        variable = f"VGPUCTL_{name.replace('-', '_').upper()}"
        given, place = os.environ.get(variable) or None, variable
        if given is None:
            given, place = from_file.get(name), f"{_config_path()}: {name}"
        if given is not None:
            value = _convert(option.name, option.type, given, place)
            if option.name != "output" or _known(value, forms, place):
                values[option.name] = value
    settings = Settings(**values)
    chosen = [
        flag for flag, on in (("--demo", settings.demo), ("--local", settings.local), ("--from", settings.bundle)) if on
    ]
    if len(chosen) > 1:
        raise Problem(f"{' and '.join(chosen)} name two sources", remedy="give one of them", exit_code=Exit.USAGE)
    return settings


def _flag(name: str) -> str:
    """The option's name as users write it."""
    return _KEYWORDS.get(name, name.replace("_", "-"))


def _known(form: str, forms: Sequence[str], place: str) -> bool:
    """Whether a command knows the default form of output. Raises Problem (wrong use) for one that none knows."""
    from vgpuctl.render.forms import FORMS

    if form not in FORMS:
        raise _wrong(place, form, f"one of: {', '.join(FORMS)}")
    return form in forms


def seconds(text: str, place: str) -> float:
    """A time such as 10s, 500ms or 1m, in seconds. Raises Problem (wrong use), naming the place."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise _wrong(place, text, "a time such as 10s, 500ms or 1m")
    return min(float(match.group(1)) * _SECONDS[match.group(2)], _LONGEST)


def _convert(name: str, kind: Any, value: Any, place: str) -> Any:
    if name == "request_timeout":
        return seconds(str(value), place)
    if kind == "bool":
        word = str(value).strip().lower()
        if word not in _TRUE | _FALSE:
            raise _wrong(place, value, "true or false")
        return word in _TRUE
    if kind == "tuple[str, ...]":
        parts = value if isinstance(value, list) else str(value).split(",")
        return tuple(str(part) for part in parts)
    text = str(value)
    if "\0" in text or isinstance(value, (dict, list)):
        raise _wrong(place, value, "one text")
    if name == "fail_on" and text not in ("error", "warn"):
        raise _wrong(place, text, "error or warn")
    return text


def _wrong(place: str, value: object, wanted: str) -> Problem:
    return Problem(f"{place}: {value!r} is not understood", remedy=f"write {wanted}", exit_code=Exit.USAGE)


def own_directory(variable: str, below: str) -> Path:
    """vgpuctl's directory by the XDG rules: under $variable, else under `below` in the home directory.

    It is relative where the user has no home directory (a container with any user number): nothing is there then.
    """
    return Path(os.environ.get(variable) or os.path.join(os.path.expanduser("~"), below)) / "vgpuctl"  # noqa: PTH111, PTH118


def _config_path() -> Path:
    return own_directory("XDG_CONFIG_HOME", ".config") / "config.yaml"


def _config_file() -> dict[str, Any]:
    """The defaults of the user's config file: a mapping from options' names (or with underscores) to values."""
    path = _config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Problem(f"cannot read {path}", str(error.strerror), exit_code=Exit.USAGE) from None
    except UnicodeDecodeError:
        raise Problem(f"{path} is not UTF-8", remedy="save it as UTF-8", exit_code=Exit.USAGE) from None
    import yaml

    try:
        content = yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Problem(f"{path} is not YAML", str(error), exit_code=Exit.USAGE) from None
    known = {_flag(option.name) for option in fields(Settings)}
    values = (
        {str(key).replace("_", "-"): value for key, value in content.items()} if isinstance(content, dict) else None
    )
    unknown = sorted(set(values or ()) - known)
    if values is None or unknown:
        what = f"{path}: {unknown[0]} is not an option" if unknown else f"{path} is not a mapping"
        raise Problem(what, remedy=f"known: {', '.join(sorted(known))}", exit_code=Exit.USAGE)
    return values
