"""What nvidia-smi shows inside a vGPU container while a process holds 1 GiB."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from bench import HERE, MIB, Bench, Card, Row, verdict

MEMORY_MIB, CORES, HELD = 5120, 50, 1024 * MIB
COMMANDS = (
    "nvidia-smi",
    "nvidia-smi -L",
    "nvidia-smi --query-gpu=memory.total,memory.used,memory.free --format=csv,noheader,nounits",
    "nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits",
    "nvidia-smi -q -x",
    'nvidia-smi -q | grep -A 5 "HAMI-core"',
)


def view(bench: Bench) -> Row:
    env = bench.environment("view", f"{MEMORY_MIB}m", CUDA_DEVICE_SM_LIMIT=str(CORES))
    holder = subprocess.Popen(
        [sys.executable, str(HERE / "churn.py"), "60", "hold", str(HELD)], env=env, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    held = holder.stdout.readline().strip()
    shown: dict[str, str] = {}
    for command in COMMANDS:
        shell = shlex.join(["sh", "-c", command])
        done = subprocess.run(shell, shell=True, env=env, capture_output=True, text=True, timeout=60, check=False)
        shown[command] = (done.stdout + done.stderr).strip()
    real = Card().used().get(holder.pid, 0)
    holder.kill()
    holder.wait()
    used = real // MIB
    block = shown[COMMANDS[5]].splitlines()
    expected = [
        "HAMI-core Virtual GPU:",
        f"    Memory Usage : {used}/{MEMORY_MIB} MB ({used * 100 // MEMORY_MIB}%)",
        rf"    Compute Usage : \d+/{CORES} cores",
        "    Process Count : 1",
    ]
    same = len(block) == len(expected) and all(
        re.fullmatch(want if "\\d" in want else re.escape(want), line)
        for want, line in zip(expected, block, strict=True)
    )
    figures = shown[COMMANDS[2]]
    try:
        ElementTree.fromstring(shown[COMMANDS[4]])
        parses = True
    except ElementTree.ParseError:
        parses = False
    shown[COMMANDS[4]] = f"{len(shown[COMMANDS[4]])} characters, XML {'parses' if parses else 'does not parse'}"
    right = figures == f"{MEMORY_MIB}, {used}, {MEMORY_MIB - used}"
    apps = shown[COMMANDS[3]] == f"{holder.pid}, {used}"
    verdicts = [
        verdict("nvidia-smi in the limited environment shows the limit (total, used, free)", right, figures),
        verdict("its process list has this container's process and its memory", apps, shown[COMMANDS[3]]),
        verdict('nvidia-smi -q | grep -A 5 "HAMI-core" shows the block', same, " / ".join(s.strip() for s in block)),
        verdict("nvidia-smi -q -x is XML that parses", parses, shown[COMMANDS[4]]),
    ]
    return {"verdicts": verdicts, "held": held, "card_used_mib": used, "shown": shown}
