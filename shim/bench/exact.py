"""Fill the card through each allocation call up to the limit: by one process, and by several at once."""

from __future__ import annotations

import subprocess

from bench import MIB, Bench, Card, Row, fault, parse, size, verdict

APIS = ("alloc", "managed", "pitch", "array", "vmm", "async")
STEPS = (MIB, 2 * MIB + 1, 64 * MIB)
BLOCK, POOL_STEP = 2 * MIB, 32 * MIB
ALLOWED = 2 * MIB  # what the driver itself may hold back of a block it has begun, in one process


def up(value: int, unit: int) -> int:
    return (value + unit - 1) // unit * unit


def charge(api: str, step: int, count: int) -> int:
    """Bytes that `count` allocations take from the card by the driver's own granularity.

    Up to 1 MiB they share blocks of 2 MiB in slices of 512 bytes; more comes in whole blocks; a pool grows by 32 MiB;
    managed memory counts as asked. pitch and array ask for whole rows, vmm for whole blocks (see exact.c)."""
    asked = {"pitch": step // 1024 * 1024, "array": step // 4096 * 4096, "vmm": up(step, BLOCK)}.get(api, step)
    if api == "managed":
        return count * asked
    if api == "async":
        return up(count * up(asked, 512), POOL_STEP)
    return up(count * up(asked, 512), BLOCK) if asked <= MIB else count * up(asked, BLOCK)


def judge(row: Row, limit: int) -> None:
    """Add what the figures mean, and whether the row is right."""
    api, step, room = row["api"], row["step"], row["free_before"]
    expected = row["taken"]
    while charge(api, step, expected + 1) <= room:
        expected += 1
    while expected and charge(api, step, expected) > room:
        expected -= 1
    short = charge(api, step, expected) - charge(api, step, row["taken"])
    row["context_mib"] = round((row["total"] - room) / MIB, 2)
    row["expected"], row["short_mib"] = expected, round(short / MIB, 2)
    row["total_right"] = row["total"] == row["device_total"] == row["nvml_total"] == limit
    row["room_again"] = abs(row["free_after"] - room) <= ALLOWED
    row["right"] = (
        row["refused_with"] == 2
        and 0 <= short <= ALLOWED
        and row["total_right"]
        and row["room_again"]
        and row["nvml_used_full"] <= limit
    )


def together(bench: Bench, card: Card, api: str, step: int, count: int) -> Row:
    """Several processes, their contexts made, fill one limit at once; the card itself is asked when all are refused."""
    command = [str(bench.programs / "exact"), api, str(step), "together"]
    env = bench.environment(f"together-{api}-{step}", bench.limit)
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(count)
    ]
    used: list[int] = []
    for _ in ("ready", "full", "seen"):
        for process in processes:
            assert process.stdout
            process.stdout.readline()
        used = [card.used().get(process.pid, 0) for process in processes]
        for process in processes:
            assert process.stdin
            if process.poll() is None:
                process.stdin.write("\n")
                process.stdin.flush()
    members: list[Row] = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        members.append({**(parse(out) or [{}])[0], **fault(process.returncode, err)})
    limit = size(bench.limit)
    row: Row = {"api": api, "step": step, "processes": count, "card_used_mib": round(sum(used) / MIB, 2)}
    row["taken"] = [member.get("taken") for member in members]
    row["refused_with"] = [member.get("refused_with") for member in members]
    # Managed memory takes none of the card's until it is touched: there only the library's own figure can be had.
    left = limit - sum(used) if api != "managed" else min(member.get("free_full", limit) for member in members)
    one_more = max(charge(api, step, 1), BLOCK)
    row["left_mib"], row["one_more_mib"] = round(left / MIB, 2), round(one_more / MIB, 2)
    row["right"] = row["refused_with"] == [2] * count and 0 <= left < one_more
    if not row["right"]:
        row["members"] = members
    return row


def exact(bench: Bench, processes: int) -> Row:
    """All calls and steps alone, then, unless `processes` is 0, by that many at once."""
    rows: list[Row] = []
    for api in APIS:
        for step in STEPS:
            found, wrong = bench.run("exact", api, step, env=bench.environment("alone", bench.limit))
            row = {"api": api, "step": step, "right": False, **(found[0] if found else {}), **wrong}
            if found:
                judge(row, size(bench.limit))
            rows.append(row)
    card = Card()
    several = [together(bench, card, api, step, processes) for api in APIS for step in STEPS] if processes else []
    total = all(row.get("total_right") for row in rows)
    most_short = max(row.get("short_mib", 0) for row in rows)
    verdicts = [
        verdict(
            f"limit {bench.limit}: total is the limit in cuMemGetInfo, cuDeviceTotalMem and NVML",
            total,
            f"{sum(bool(row.get('total_right')) for row in rows)} of {len(rows)} rows",
        ),
        verdict(
            f"limit {bench.limit}: each call and step gets CUDA_ERROR_OUT_OF_MEMORY within 2 MiB of total - context",
            all(row["right"] for row in rows),
            f"{sum(row['right'] for row in rows)} of {len(rows)} rows, short by at most {most_short} MiB,"
            f" context {rows[0].get('context_mib')} MiB; room is back after the frees",
        ),
    ]
    if several:
        verdicts.append(
            verdict(
                f"limit {bench.limit}: {processes} at once fill it together, by the card's own figures, to less than"
                " one step, and never over it",
                all(row["right"] for row in several),
                f"{sum(row['right'] for row in several)} of {len(several)} rows, left between"
                f" {min(row['left_mib'] for row in several)} and {max(row['left_mib'] for row in several)} MiB",
            )
        )
    return {"verdicts": verdicts, "rows": rows, "together": several}
