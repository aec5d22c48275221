"""Where a live object differs from the one that is wanted, in the fields that we set; what others set beside them is
not looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vgpuctl.model.change import Line
from vgpuctl.model.quantity import quantity

_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "ports": "name",
}
"""Lists that the API server merges by a key of their elements; any other is one value."""
_AMOUNTS: Final = re.compile(r"(^|\.)(limits|requests|hard)\.")
_ELEMENT: Final = re.compile(r"\[[^\]]*\]")
_OUTSIDE: Final = ("apiVersion", "kind")
_LONGEST: Final = 60
_LEAD: Final = 10
"""Characters that are shown before the place where two long texts part."""


def differences(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[Line, ...]:
    """The values to change, none when the object is right. An element that the API server filled with defaults is what
    was wanted."""
    found = _object({key: wanted[key] for key in wanted if key not in _OUTSIDE}, live, "")
    return tuple(Line(path, *_apart(before, after)) for path, before, after in found)


def dropped(former: Mapping[str, Any], wanted: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[Line, ...]:
    """The values that we set formerly, no longer want, and that are still there: applying `wanted` takes them away.
    Of a part of which nothing is kept only the part is told."""
    there = {path for path, _ in _leaves(live, "")}
    kept = [path for path, _ in _leaves(wanted, "")]
    lines: dict[str, Line] = {}
    for path, value in _leaves(former, ""):
        if path not in there or path in kept or path.startswith(_OUTSIDE):
            continue
        parts = [path[: match.end()] for match in _ELEMENT.finditer(path)]
        whole = next((part for part in parts if not any(other.startswith(part) for other in kept)), "")
        lines.setdefault(whole or path, Line(whole or path, "there" if whole else shown(value), None))
    return tuple(lines.values())


def together(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The same, but several places that change from one value to another are told once."""
    places: dict[tuple[str | None, str | None], list[str]] = {}
    for line in lines:
        places.setdefault((line.before, line.after), []).append(line.path)
    return tuple(
        Line(paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else ""), before, after)
        for (before, after), paths in places.items()
    )


def shown(value: Any) -> str:
    """A value as the preview shows it: on one line, and short."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _apart(before: Any, after: Any) -> tuple[str | None, str]:
    """Both values as the preview shows them; long ones from shortly before the place where they part."""
    if before is None:
        return None, shown(after)
    if shown(before) != shown(after):
        return shown(before), shown(after)
    old, new = (json.dumps(value, ensure_ascii=False) for value in (before, after))  # tells "1" from 1, and white space
    part = next((i for i, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), len(min(old, new)))
    start = max(part - _LEAD, 0)
    return _window(old, start), _window(new, start)


def _window(text: str, start: int) -> str:
    rest = text[start:]
    cut = rest if len(rest) <= _LONGEST else f"{rest[: _LONGEST - 1]}…"
    return f"…{cut}" if start else cut


_Difference = tuple[str, Any, Any]


def _object(wanted: Mapping[str, Any], live: Mapping[str, Any], path: str) -> Iterator[_Difference]:
    for key, value in wanted.items():
        yield from _value(value, live.get(key), f"{path}.{key}" if path else key, key)


def _value(wanted: Any, live: Any, path: str, field: str) -> Iterator[_Difference]:
    if wanted in (None, "", {}, []) and live in (None, "", {}, []):
        return  # the API server does not keep what is empty
    if isinstance(wanted, dict) and isinstance(live, dict):
        yield from _object(wanted, live, path)
    elif isinstance(wanted, list) and isinstance(live, list):
        key = _KEYS.get(field, "")
        if key and all(isinstance(item, dict) and key in item for item in (*wanted, *live)):
            there = {item[key]: item for item in live}
            for item in wanted:
                yield from _value(item, there.get(item[key]), f"{path}[{item[key]}]", "")
        elif len(wanted) != len(live) or any(list(_value(*pair, path, "")) for pair in zip(wanted, live, strict=True)):
            yield path, live, wanted
    elif not _same(wanted, live, path):
        yield path, live, wanted


def _same(wanted: Any, live: Any, path: str) -> bool:
    """One value, or two texts for one quantity: the API server writes `1024Mi` as `1Gi`."""
    if isinstance(wanted, bool) != isinstance(live, bool):
        return False
    if wanted == live or not _AMOUNTS.search(path):
        return bool(wanted == live)
    try:
        return quantity(wanted).value == quantity(live).value
    except ValueError:
        return False


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every single value with its path; elements of lists by their key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        keyed = next((key for key in ("name", "mountPath") if all(key in item for item in value)), "")
        if not keyed:
            yield path, value
        for item in value if keyed else ():
            yield from _leaves(item, f"{path}[{item[keyed]}]")
    elif value not in (None, {}, []):
        yield path, value
