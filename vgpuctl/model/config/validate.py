"""Finds out what a text is, and applies the rules of its kind: bare files, ConfigMaps, Lists, several documents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from vgpuctl.model.config.configmap import ConfigMap, configmap
from vgpuctl.model.config.kind import NODE, Kind, kind_of, kind_of_text
from vgpuctl.model.config.shape import templates
from vgpuctl.model.context import Context
from vgpuctl.model.document import Document, Fault, Mapping, Node, Position, Sequence, read_json, read_yaml
from vgpuctl.model.finding import Checked, Finding, Severity
from vgpuctl.model.manifest import fault_finding, manifests
from vgpuctl.model.place import Lines, Place
from vgpuctl.model.rule import Hit, apply_rules, in_order

_BOM = "\ufeff"


@dataclass
class Verdict:
    """What was found in one text: what it was taken to be, and the findings."""

    file: str
    context: Context
    checked: list[Checked] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, rule: str, hit: Hit) -> None:
        self.findings.append(
            Finding(
                rule=rule,
                severity=hit.severity or Severity.ERROR,
                message=hit.message,
                remedy=hit.remedy,
                file=self.file,
                line=hit.position.line,
                column=hit.position.column,
                path=hit.path,
            )
        )

    def faults(self, faults: Iterable[Fault]) -> None:
        self.findings += [fault_finding(fault, self.file) for fault in faults]

    def saw(self, subject: str) -> None:
        self.checked.append(Checked(file=self.file, subject=subject))


def validate(text: str, file: str, context: Context, kind: Kind | None = None) -> Verdict:
    """Everything that is wrong with a text. kind: what it is where its own words do not tell."""
    verdict = Verdict(file, context)
    body = text.removeprefix(_BOM)
    strict = read_json(body) if body.lstrip()[:1] in ("{", "[") else None
    documents = [strict] if strict and strict.root is not None else read_yaml(body)
    if any(_is_object(document.root) for document in documents) or _like_objects(body):
        _objects(documents, verdict, kind)
    else:
        roots = [strict.root if strict else None, *(document.root for document in documents)]
        found = next((guess for root in roots if (guess := kind_of(root))), None) or kind or kind_of_text(text)
        if found is None:
            verdict.saw("unknown")
            _nothing(documents, verdict)
        else:
            verdict.saw(found.title)
            content(found, text if found is NODE else body, None, verdict)
    _undecodable(body, verdict)
    lines = Lines(body)
    verdict.findings = [_with_line(finding, lines) for finding in in_order(verdict.findings)]
    return verdict


def _undecodable(text: str, verdict: Verdict) -> None:
    """Bytes that are no UTF-8 were read as U+FFFD."""
    offset = text.find("\ufffd")
    if offset >= 0:
        message = "the text is not UTF-8: the API server refuses it"
        verdict.add("encoding", Hit(Lines(text).at(offset), "", message, "save it as UTF-8"))


def _with_line(finding: Finding, lines: Lines) -> Finding:
    return msgspec.structs.replace(finding, excerpt=lines.row(finding.line)) if finding.line else finding


def content(kind: Kind, text: str, place: Place | None, verdict: Verdict) -> None:
    """The rules of a kind on its own text. place: where the text stands in its file."""
    document = _first(kind, text, place, verdict)
    if document is None:
        return
    verdict.faults(document.faults)
    if any(fault.kind == "invisible-character" for fault in document.faults):
        return
    _rules(kind, document, verdict)


def _rules(kind: Kind, document: Document, verdict: Verdict) -> None:
    found = list(apply_rules(kind.rules, kind.read(document), verdict.context, verdict.file))
    errors = [f for f in (*found, *verdict.findings) if f.severity is Severity.ERROR and f.rule != kind.last]
    verdict.findings += [finding for finding in found if not errors or finding.rule != kind.last]


def _first(kind: Kind, text: str, place: Place | None, verdict: Verdict) -> Document | None:
    """The document that upstream's loader reads; None when it reads none, which has then been said."""
    if kind.form == "json":
        documents = [read_json(text, place)]
        if documents[0].broken and _is_yaml(text):
            offset = len(text) - len(text.lstrip())
            position = (place or Lines(text)).at(offset)
            message = "the file is decoded as JSON only: YAML is an error, and the whole file is ignored on every node"
            verdict.add("foreign-format", Hit(position, "", message, 'write JSON: {"nodeconfig": [ {…} ]}'))
            return None
    else:
        documents = read_yaml(text, place)
        extra = next((d for d in documents[1:] if d.root is not None or d.broken), None)
        if extra and not _empty(extra.root):
            empty = "which is empty" if documents[0].root is None else "what stands below is ignored"
            message = f"only the first document is read, {empty}"
            verdict.add("extra-document", Hit(extra.start, "", message, "merge the documents into one"))
            if documents[0].root is None:
                return None
    document = documents[0]
    if not document.broken:
        return document
    _broken(document, verdict)
    return None


def _broken(document: Document, verdict: Verdict) -> None:
    """A text that cannot be read: because of a template's markers if it has any, else its faults."""
    found = list(templates(document))
    for position, marker in found:
        message = f"{marker} is a template that was not rendered: nothing is loaded"
        verdict.add("unrendered-template", Hit(position, "", message, "render it, or write the value"))
    if not found:
        verdict.faults(document.faults)


def _objects(documents: list[Document], verdict: Verdict, kind: Kind | None) -> None:
    """A stream of Kubernetes objects: its ConfigMaps, and bare documents among them."""
    for document in documents:
        if document.broken:
            _broken(document, verdict)
            continue
        found = False
        for manifest in manifests([document], verdict.file):
            wrapped = configmap(manifest, verdict.context, kind) if manifest.kind == "ConfigMap" else None
            if wrapped:
                _wrapped(wrapped, document, verdict)
                found = True
        if not found and not _is_object(document.root) and (bare := kind_of(document.root)):
            verdict.saw(bare.title)
            _rules(bare, document, verdict)
            found = True
        if found:
            verdict.faults(document.faults)
    if not verdict.checked and not verdict.findings:
        verdict.saw("Kubernetes objects")
        _nothing(documents, verdict)


def _wrapped(wrapped: ConfigMap, document: Document, verdict: Verdict) -> None:
    verdict.saw(f"{wrapped.kind.title} in {wrapped.title}")
    for rule, hit in wrapped.hits:
        verdict.add(rule, hit)
    if wrapped.text is not None:
        content(wrapped.kind, wrapped.text.text, wrapped.place(document.text), verdict)


def _nothing(documents: list[Document], verdict: Verdict) -> None:
    if any(document.broken for document in documents):
        for document in documents:
            _broken(document, verdict)
        return
    message = "no device config, node config or scheduler configuration is in it"
    remedy = "say what it is meant to be with --kind, or see `vgpuctl config generate`"
    root = documents[0].root
    verdict.add("no-configuration", Hit(root.position if root else Position(1), "", message, remedy))


def _is_object(root: Node | None) -> bool:
    """The root is a Kubernetes object, or a list of them."""
    if isinstance(root, Sequence):
        return any(_is_object(item) for item in root.items)
    if not isinstance(root, Mapping):
        return False
    return root.get("kind") is not None and (root.get("apiVersion") is not None or root.get("metadata") is not None)


def _like_objects(text: str) -> bool:
    """The text means to be a Kubernetes object, even if it cannot be read."""
    return bool(re.search(r"^[ \t]*(- )?\"?kind\"?:\s*\"?(ConfigMap|List|ConfigMapList)\b", text, re.MULTILINE))


def _is_yaml(text: str) -> bool:
    """The text is a YAML mapping or list, and no attempt at JSON."""
    bare = re.sub(r"^[ \t]*#.*$", "", text.removeprefix(_BOM), flags=re.MULTILINE).strip()
    if bare[:1] in ("{", "[", '"', ""):
        return False
    return isinstance(read_yaml(bare)[0].root, (Mapping, Sequence))


def _empty(root: Node | None) -> bool:
    return isinstance(root, Mapping) and not root.entries
