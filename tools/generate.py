"""Writes every generated file anew, or with --check says which are not fresh.

Each generator is a function that returns path → text; adding one is one line in GENERATORS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools import checks_page, completions, rules_page, schemas

ROOT = Path(__file__).resolve().parent.parent
GENERATORS: tuple[Callable[[], dict[str, str]], ...] = (
    checks_page.files,
    completions.files,
    rules_page.files,
    schemas.files,
)


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for generator in GENERATORS:
        for name, text in generator().items():
            path = ROOT / name
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'not fresh; run make generate' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
