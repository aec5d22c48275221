"""How the demo's pods use their vGPUs: functions of the clock alone, so that the same moment shows the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

_DAY = 86400.0


@dataclass(frozen=True)
class Use:
    """memory: of the limit. cores: of one card. throttled: of the time. last_kernel: Unix seconds, 0 for never."""

    memory: float
    cores: float
    throttled: float
    last_kernel: float


def chance(text: str) -> float:
    """A number from 0 to 1 that follows from the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") / 0xFFFFFFFF


def noise(seed: str, at: float, period: float) -> float:
    """A smooth random walk between 0 and 1 that takes a new direction every `period` seconds."""
    step, part = divmod(at / period, 1.0)
    before, after = (chance(f"{seed}:{number:.0f}") for number in (step, step + 1))
    return before + (after - before) * part * part * (3 - 2 * part)


def train(seed: str, at: float, cores: float) -> Use:
    """Busy up to its limit, but for a pause of 12 s every five minutes while it writes a checkpoint."""
    into = (at + 300 * noise(seed, 0, 1)) % 300
    if into < 12:
        return Use(0.93, 0.02 * cores, 0.0, at - into)
    used = cores * (0.90 + 0.10 * noise(seed, at, 9))
    return Use(0.93 + 0.03 * noise(seed, at, 600), used, 0.0 if cores >= 1 else 0.15 + 0.1 * noise(seed, at, 30), at)


def serve(seed: str, at: float, cores: float) -> Use:
    """Follows the working day, with bursts."""
    day = 0.5 - 0.5 * math.cos(2 * math.pi * (at % _DAY) / _DAY)
    load = min(1.0, 0.15 + 0.55 * day + 0.35 * noise(seed, at, 14) ** 2)
    throttled = max(0.0, load - 0.8) * 0.6
    return Use(0.62 + 0.12 * noise(seed, at, 240), cores * load, throttled, at - round(2 * noise(seed, at, 5)))


def explore(seed: str, at: float, cores: float) -> Use:
    """A person at a notebook: minutes of work, minutes of thought."""
    for ago in range(60):
        window = math.floor(at / 90) - ago
        if chance(f"{seed}:{window}") < 1 / 3:
            if ago == 0:
                return Use(0.45 + 0.1 * noise(seed, at, 90), cores * (0.2 + 0.7 * noise(seed, at, 6)), 0.03, at)
            return Use(0.45, 0.0, 0.0, (window + 1) * 90.0)
    return Use(0.45, 0.0, 0.0, at - at % _DAY)


def sleep(seed: str, at: float, cores: float) -> Use:
    """Holds memory since the morning and computes nothing."""
    return Use(0.31, 0.0, 0.0, at - at % (_DAY / 3) - 3600 * (1 + noise(seed, 0, 1)))


def spill(seed: str, at: float, cores: float) -> Use:
    """Nothing holds it back: more memory than its limit, more compute than its share."""
    return Use(1.14 + 0.05 * noise(seed, at, 60), min(1.0, cores + 0.4 + 0.15 * noise(seed, at, 10)), 0.0, at)


BEHAVIOURS: dict[str, Callable[[str, float, float], Use]] = {
    "train": train,
    "serve": serve,
    "explore": explore,
    "sleep": sleep,
    "spill": spill,
}
"""What a workload `does`; one that only starts uses nothing and is in no monitor's answer."""
