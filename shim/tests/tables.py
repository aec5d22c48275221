"""The tables of the driver's entry points in data/."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"


def rows(path: Path) -> list[list[str]]:
    """The lines of a tab-separated table below its # heading."""
    return [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]


def entry_points(name: str) -> list[str]:
    """All symbols of cuda.tsv or nvml.tsv."""
    return [row[1] for row in rows(DATA / f"{name}.tsv")]


def lookups() -> list[tuple[str, int, str, str]]:
    """(name, lowest version, any | legacy | per-thread, symbol) of cuGetProcAddress."""
    return [(name, int(version), mode, symbol) for name, version, mode, symbol in rows(DATA / "getproc.tsv")]
