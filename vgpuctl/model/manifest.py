"""Kubernetes objects in a text, with positions: one or several documents, Lists unwrapped, YAML or JSON.

The base of `config validate`, `pod lint` and `quota lint`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vgpuctl.model.document import Document, Entry, Fault, Mapping, Node, Scalar, Sequence, find, read_json, read_yaml
from vgpuctl.model.finding import Finding, Severity

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Manifest:
    """One object. path: where it stands in its document, such as `items[2]`, or "" for a document of its own."""

    root: Mapping
    file: str = ""
    path: str = ""

    @property
    def kind(self) -> str:
        return text_of(self.root.get("kind"))

    @property
    def group(self) -> str:
        """The API group: `apps`, `batch.volcano.sh`, "" for the core group."""
        version = text_of(self.root.get("apiVersion"))
        return version.rpartition("/")[0]

    @property
    def name(self) -> str:
        return text_of(find(self.root, "metadata", "name")) or text_of(find(self.root, "metadata", "generateName"))

    @property
    def namespace(self) -> str:
        return text_of(find(self.root, "metadata", "namespace"))

    @property
    def live(self) -> bool:
        """It was read from an API server, so what the system writes may be in it."""
        metadata = find(self.root, "metadata")
        return isinstance(metadata, Mapping) and any(metadata.get(key) for key in ("uid", "resourceVersion"))

    @property
    def title(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}".strip()


def text_of(node: Node | None) -> str:
    """The text of a scalar that is a string; "" for anything else."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else ""


def read_text(text: str, file: str = "") -> list[Document]:
    """The documents of a text: JSON when it is a JSON text or says so by its name, else YAML."""
    json_name = file.endswith(".json")
    if json_name or text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        document = read_json(text)
        if json_name or document.root is not None:
            return [document]
    return read_yaml(text)


def manifests(documents: Iterable[Document], file: str = "") -> Iterator[Manifest]:
    """The objects of a text, Lists (of any kind that ends so) unwrapped."""
    for document in documents:
        if isinstance(document.root, Mapping):
            yield from _unwrap(document.root, file, "")
        elif isinstance(document.root, Sequence):
            yield from _items(document.root, file, "")


def _unwrap(root: Mapping, file: str, path: str) -> Iterator[Manifest]:
    items = root.get("items")
    if isinstance(items, Sequence) and text_of(root.get("kind")).endswith("List"):
        yield from _items(items, file, f"{path}.items" if path else "items")
    else:
        yield Manifest(root, file, path)


def _items(items: Sequence, file: str, path: str) -> Iterator[Manifest]:
    for index, item in enumerate(items):
        if isinstance(item, Mapping):
            yield from _unwrap(item, file, f"{path}[{index}]")


def fault_finding(fault: Fault, file: str) -> Finding:
    """A fault of the text itself as a finding: the API server or kubectl refuses such a text."""
    return Finding(
        rule=fault.kind,
        severity=Severity.ERROR,
        message=fault.message,
        remedy=fault.remedy,
        file=file,
        line=fault.position.line,
        column=fault.position.column,
        path=fault.path,
    )


def join(path: str, key: str | int) -> str:
    """A path with one more step: `spec.containers[0].resources.limits["volcano.sh/vgpu-number"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def entries(node: Node | None) -> Iterator[Entry]:
    """The entries of a mapping that count; none for anything else."""
    if isinstance(node, Mapping):
        yield from node


def items(node: Node | None) -> Iterator[tuple[int, Mapping]]:
    """The mappings of a list, with their index."""
    if isinstance(node, Sequence):
        for index, item in enumerate(node):
            if isinstance(item, Mapping):
                yield index, item


def near(word: str, names: Iterable[str]) -> str:
    """The name that a misspelt word stands for; "" when none is near enough. Case and separators count little."""
    names = list(names)
    plain = {_plain(name): name for name in names}
    if _plain(word) in plain:
        return plain[_plain(word)]
    found = difflib.get_close_matches(_plain(word), list(plain), n=1, cutoff=0.8)
    return plain[found[0]] if found else ""


def near_key(key: str, known: Iterable[str]) -> str:
    """The key `domain/name` that a misspelt one stands for: both parts must be near; "" when none is.

    A long common domain alone makes no two keys alike.
    """
    domain, _, name = key.strip().rpartition("/")
    return next(
        (
            full
            for full in known
            for right_domain, _, right_name in (full.rpartition("/"),)
            if near(domain, (right_domain,)) and near(name, (right_name,))
        ),
        "",
    )


def _plain(word: str) -> str:
    return re.sub(r"[-_ ]", "", word).lower()
