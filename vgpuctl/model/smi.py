"""Parsers of what `nvidia-smi` prints, for bundles of machines where NVML cannot be asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar
from xml.etree import ElementTree

from vgpuctl.model.card import BrokenCard, Card, Driver, MigProfile, Process
from vgpuctl.model.reading import Reading, known, missing

_MIB = 2**20
_HEADER = re.compile(r"(?P<key>Driver Version|CUDA Version)\s*:\s*(?P<value>\d[\d.]*)")
_LINE = re.compile(r"^GPU (?P<index>\d+): (?P<model>.+) \(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)", re.M)
_PROFILE = re.compile(r"MIG (?P<name>\d+g\.\d+gb\S*)\s+\d+\s+\d+/(?P<count>\d+)\s+(?P<memory>\d+(?:\.\d+)?)")
_SOURCE = "nvidia-smi"
T = TypeVar("T")


def versions(text: str) -> dict[str, str]:
    """`Driver Version` and `CUDA Version` of the plain table or of -q."""
    return {match.group("key"): match.group("value") for match in _HEADER.finditer(text)}


def uuids(text: str) -> dict[str, str]:
    """`nvidia-smi -L`: model by UUID, in the order of the cards."""
    return {match.group("uuid"): match.group("model") for match in _LINE.finditer(text)}


def mig_profiles(text: str) -> tuple[MigProfile, ...]:
    """`nvidia-smi mig -lgip`: the profiles; its GiB become MiB."""
    found = {
        match.group("name"): MigProfile(
            match.group("name"), round(float(match.group("memory")) * 1024), int(match.group("count"))
        )
        for match in _PROFILE.finditer(text)
    }
    return tuple(found.values())


def csv(text: str) -> list[dict[str, str]]:
    """`--query-gpu=… --format=csv`: one mapping per card from the header's names; units stay in the text."""
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    header = [re.sub(r" \[.*\]$", "", cell) for cell in lines[0]] if lines else []
    return [dict(zip(header, line, strict=False)) for line in lines[1:]]


def xml(text: str) -> tuple[Driver, tuple[Card, ...]]:
    """`nvidia-smi -q -x`. Raises ValueError for a text that is not such a document."""
    if "<!ENTITY" in text:
        raise ValueError("entities are not part of nvidia-smi's XML")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    if root.tag != "nvidia_smi_log":
        raise ValueError(f"a <{root.tag}> is not what nvidia-smi -q -x prints")
    rows = [_card(index, gpu) for index, gpu in enumerate(root.iter("gpu"))]
    driver = Driver(
        version=root.findtext("driver_version", ""),
        cuda=_reading(root, "cuda_version", str),
        library=missing("nvidia-smi does not say which libcuda is installed", _SOURCE),
        broken=tuple(row for row in rows if isinstance(row, BrokenCard)),
    )
    return driver, tuple(row for row in rows if isinstance(row, Card))


def _card(index: int, gpu: ElementTree.Element) -> Card | BrokenCard:
    memory = _reading(gpu, "fb_memory_usage/total", _mib)
    if memory.value is None:
        return BrokenCard(index, f"no memory size: {memory.reason}", gpu.findtext("uuid", ""))
    used = _reading(gpu, "fb_memory_usage/used", _mib)
    return Card(
        index=index,
        uuid=gpu.findtext("uuid", ""),
        model=gpu.findtext("product_name", ""),
        memory=memory.value,
        bus=gpu.get("id", ""),
        minor=_reading(gpu, "minor_number", int),
        used=used,
        busy=_reading(gpu, "utilization/gpu_util", lambda text: int(text.split()[0]) / 100),
        temperature=_reading(gpu, "temperature/gpu_temp", lambda text: int(text.split()[0])),
        persistence=_reading(gpu, "persistence_mode", _enabled),
        mig=_reading(gpu, "mig_mode/current_mig", _enabled),
        mig_pending=_reading(gpu, "mig_mode/pending_mig", _enabled),
        ecc=_reading(gpu, "ecc_mode/current_ecc", _enabled),
        fabric=_reading(gpu, "fabric/state", str),
        processes=known(tuple(_process(row) for row in gpu.iter("process_info")), _SOURCE),
    )


def _process(row: ElementTree.Element) -> Process:
    kind = "graphics" if row.findtext("type", "") == "G" else "compute"
    memory = _reading(row, "used_memory", _mib).value
    return Process(int(row.findtext("pid", "0")), kind, memory, None, row.findtext("process_name", ""))


def _reading(parent: ElementTree.Element, path: str, convert: Callable[[str], T]) -> Reading[T]:
    text = (parent.findtext(path) or "").strip()
    if text in ("", "N/A", "None"):
        return missing(f"nvidia-smi says {text or 'nothing'}", f"{_SOURCE} {path}")
    try:
        return known(convert(text), f"{_SOURCE} {path}")
    except (ValueError, IndexError):
        return missing(f"nvidia-smi says {text!r}", f"{_SOURCE} {path}")


def _mib(text: str) -> int:
    number, unit = text.split()
    if unit != "MiB":
        raise ValueError(text)
    return int(number) * _MIB


def _enabled(text: str) -> bool:
    return {"Enabled": True, "Disabled": False}[text] if text in ("Enabled", "Disabled") else _refuse(text)


def _refuse(text: str) -> bool:
    raise ValueError(text)
