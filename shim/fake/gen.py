"""Write the generated C sources and linker scripts of the simulated driver.

Reads the tables in data/ and writes into the directory given:

* cards.inc, drivers.inc, errors.inc, getproc_rows.c: the tables as C initialisers;
* stubs_cuda.c, stubs_nvml.c: a "not supported" answer for each symbol that the table calls not simulated;
* per_thread.c: the _ptsz and _ptds twins, which call their base with NULL meaning the thread's own stream;
* <driver>/cuda.map, <driver>/nvml.map: what that driver exports.

The link fails when a symbol marked simulated has no code, or has code and is marked otherwise.
"""

import sys
from pathlib import Path

DATA = Path(__file__).parent / "data"
C_TYPES = {
    "P": "void *", "H": "void *", "T": "void *", "C": "void *", "U": "unsigned", "E": "int", "Z": "size_t",
    "Q": "unsigned long long", "D": "unsigned long long", "d": "unsigned", "F": "float", "B": "unsigned char",
    "W": "unsigned short", "S64": "struct bytes64", "S8": "struct bytes8",
}  # fmt: skip
SUFFIXES = ("_ptsz", "_ptds")


def rows(name: str) -> list[list[str]]:
    """The lines of a table below its # heading, split at tabs."""
    lines = (DATA / f"{name}.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def version(text: str) -> int:
    major, minor = text.split(".")
    return int(major) * 10 + int(minor)


def base_of(symbol: str) -> str | None:
    """The symbol whose per-thread twin this is, or None."""
    return next((symbol[: -len(s)] for s in SUFFIXES if symbol.endswith(s)), None)


def cards() -> str:
    out = []
    for model, name, memory, reserved, context, sms, compute, mhz, mem_mhz, bits, pci, watts, slices in rows("cards"):
        out.append(
            f'{{"{model}", "{name}", {memory}, {reserved}, {context}, {sms}, {version(compute)}, '
            f"{mhz}, {mem_mhz}, {bits}, 0x{pci}, {watts}, {slices}}},"
        )
    return "\n".join(out)


def getproc() -> str:
    modes = {"any": 0, "legacy": 1, "per-thread": 2}
    first = {symbol: int(cuda) for symbol, cuda, _ in rows("cuda")}
    found = [row for row in rows("getproc") if row[3] in first]
    out = ['#include "getproc.h"', *(f"int {symbol}(void);" for symbol in sorted({row[3] for row in found}))]
    out.append("const struct getproc getproc_rows[] = {")
    for name, minimum, mode, symbol in found:
        out.append(f'{{"{name}", {minimum}, {modes[mode]}, (void *){symbol}, {first[symbol]}}},')
    return "\n".join([*out, "{0, 0, 0, 0, 0}};"])


def stubs(table: str, code: int) -> str:
    names = [symbol for symbol, _, simulated in rows(table) if simulated == "no"]
    return "\n".join(f"int {n}(void);\nint {n}(void) {{ return {code}; }}" for n in names)


def per_thread() -> str:
    sigs = {name: codes.split(",") for name, codes, _ in rows("cuda_sigs")}
    out = [
        "#include <stddef.h>",
        "struct bytes64 { char b[64]; };\nstruct bytes8 { char b[8]; };",
        "void fake_null_is_own(int on);",
    ]
    for symbol, _, simulated in rows("cuda"):
        base = base_of(symbol)
        if base is None or simulated == "no":
            continue
        types = [C_TYPES[c] for c in sigs[symbol] if c != "void"]
        params = ", ".join(f"{t} a{i}" for i, t in enumerate(types)) or "void"
        args = ", ".join(f"a{i}" for i in range(len(types)))
        out.append(
            f"int {base}({params});\nint {symbol}({params});\n"
            f"int {symbol}({params}) {{\n\tfake_null_is_own(1);\n\tint r = {base}({args});\n"
            f"\tfake_null_is_own(0);\n\treturn r;\n}}"
        )
    return "\n".join(out)


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    drivers = rows("drivers")
    texts = {
        "cards.inc": cards(),
        "drivers.inc": "\n".join(
            f'{{"{d}", "{v}", {cuda}, {version(low)}, {version(high)}}},' for d, v, cuda, low, high, _ in drivers
        ),
        "getproc_rows.c": getproc(),
        "errors.inc": "\n".join(f'{{{code}, "{name}"}},' for code, name in rows("curesult")),
        "stubs_cuda.c": stubs("cuda", 801),
        "stubs_nvml.c": stubs("nvml", 3),
        "per_thread.c": per_thread(),
    }
    for directory, _, cuda, *_ in drivers:
        (out / directory).mkdir(exist_ok=True)
        for table in ("cuda", "nvml"):
            names = [symbol for symbol, first, _ in rows(table) if int(first) <= int(cuda)]
            lines = "".join(f"\t{n};\n" for n in names)
            texts[f"{directory}/{table}.map"] = "{ global:\n" + lines + "local: *; };"
    for name, text in texts.items():
        path = out / name
        if not path.exists() or path.read_text() != text + "\n":
            path.write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
