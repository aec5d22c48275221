"""Whole manifests from templates/install, in which values are set by path.

An element of a list is found by its `name`. A path that the template lacks raises KeyError: a template and the code
that fills it cannot drift apart unseen.
"""

from __future__ import annotations

from typing import Any

from vgpuctl import resources

Object = dict[str, Any]


def load(name: str) -> list[Object]:
    """The objects of a template, fresh ones each time."""
    return resources.documents(f"templates/install/{name}.yaml")


def at(where: Object, *path: str) -> Any:
    """What lies at a path."""
    here: Any = where
    for step in path:
        here = here[step if isinstance(here, dict) else _index(here, step)]
    return here


def put(value: Any, where: Object, *path: str) -> None:
    """Sets the value at a path."""
    here = at(where, *path[:-1])
    if path[-1] not in here:
        raise KeyError("/".join(path))
    here[path[-1]] = value


def drop(where: Object, *path: str) -> None:
    """Takes out what lies at a path."""
    here = at(where, *path[:-1])
    del here[path[-1] if isinstance(here, dict) else _index(here, path[-1])]


def _index(items: list[Any], name: str) -> int:
    for number, item in enumerate(items):
        if item["name"] == name:
            return number
    raise KeyError(name)
