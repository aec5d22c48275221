"""The child process that talks to NVML: a line on stdin asks, a line of JSON on stdout answers.

A broken driver can make any NVML call wait for ever, so no call is made in the process that must go on; see
`sources.driver`. One question a card does not answer is a missing Reading, a card that fails is a BrokenCard.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pynvml

from vgpuctl.model.card import BrokenCard, Card, Driver, Library, MigProfile, Process
from vgpuctl.model.reading import Reading, known, missing

T = TypeVar("T")
_SOURCE = "NVML"
_WINDOW = 1_000_000
"""Microseconds of process samples to average."""
_WAITING = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "temperature (software)",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "temperature (hardware)",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
}
_FABRIC = {
    pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED: "not supported",
    pynvml.NVML_GPU_FABRIC_STATE_NOT_STARTED: "not started",
    pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS: "in progress",
    pynvml.NVML_GPU_FABRIC_STATE_COMPLETED: "completed",
}
_ABSENT = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)


class Answer(msgspec.Struct, frozen=True):
    """What the child answers."""

    driver: Reading[Driver]
    cards: Reading[tuple[Card, ...]]


def main() -> None:
    """Answers each line until stdin ends. With the argument `library`, says once what libcuda is here."""
    if sys.argv[1:] == ["library"]:
        sys.stdout.buffer.write(msgspec.json.encode(library()) + b"\n")
        return
    fault = _start()
    for _ in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(fault or read()) + b"\n")
        sys.stdout.buffer.flush()


def _start() -> Answer | None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        reason = _why(error)
        absent = error.value in _ABSENT
        return Answer(missing(reason, _SOURCE, absent=absent), missing(reason, _SOURCE, absent=absent))
    return None


def read() -> Answer:
    """The driver and all its cards, now."""
    now = time.time()
    try:
        count = pynvml.nvmlDeviceGetCount()
        version = _text("nvmlSystemGetDriverVersion")
    except pynvml.NVMLError as error:
        return Answer(missing(_why(error), _SOURCE), missing(_why(error), _SOURCE))
    rows = [_card(index, now) for index in range(count)]
    driver = Driver(
        version=version,
        cuda=_ask(lambda: _cuda(pynvml.nvmlSystemGetCudaDriverVersion_v2())),
        broken=tuple(row for row in rows if isinstance(row, BrokenCard)),
    )
    return Answer(known(driver, _SOURCE, now), known(tuple(row for row in rows if isinstance(row, Card)), _SOURCE, now))


def _memory(handle: Any) -> Any:
    """Total and used memory as nvidia-smi shows them: the second version leaves out what the driver keeps for itself,
    the first one (drivers before 510) counts it as used."""
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
    return pynvml.nvmlDeviceGetMemoryInfo(handle)


def _card(index: int, now: float) -> Card | BrokenCard:
    name = ""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        name = _text("nvmlDeviceGetUUID", handle)
        model = _text("nvmlDeviceGetName", handle)
        memory = _memory(handle)
    except pynvml.NVMLError as error:
        unified = bool(name) and error.value == pynvml.NVML_ERROR_NOT_SUPPORTED
        return BrokenCard(index, _why(error), name, unified)
    mig = _ask(lambda: pynvml.nvmlDeviceGetMigMode(handle))
    remapped = _ask(lambda: pynvml.nvmlDeviceGetRemappedRows(handle))
    return Card(
        index=index,
        uuid=name,
        model=model,
        memory=int(memory.total),
        bus=_ask(lambda: str(pynvml.nvmlDeviceGetPciInfo(handle).busId)).value or "",
        minor=_ask(lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle))),
        capability=_ask(lambda: tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))),
        used=known(int(memory.used), _SOURCE, now),
        busy=_ask(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
        temperature=_ask(lambda: int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))),
        power=_ask(lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        power_limit=_ask(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
        persistence=_ask(lambda: bool(pynvml.nvmlDeviceGetPersistenceMode(handle))),
        mig=mig.map(lambda modes: bool(modes[0])),
        mig_pending=mig.map(lambda modes: bool(modes[1])),
        mig_profiles=_ask(lambda: tuple(_profiles(handle))),
        ecc=_ask(lambda: bool(pynvml.nvmlDeviceGetEccMode(handle)[0])),
        uncorrected=_ask(
            lambda: int(
                pynvml.nvmlDeviceGetTotalEccErrors(
                    handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
                )
            )
        ),
        pages_pending=_ask(lambda: bool(pynvml.nvmlDeviceGetRetiredPagesPendingStatus(handle))),
        remap_pending=remapped.map(lambda rows: bool(rows[2])),
        remap_failed=remapped.map(lambda rows: bool(rows[3])),
        throttled=_ask(lambda: _reasons(handle)),
        fabric=_ask(lambda: _fabric(handle)),
        processes=_ask(lambda: tuple(_processes(handle, now))),
    )


def _ask(question: Callable[[], T]) -> Reading[T]:
    try:
        return known(question(), _SOURCE)
    except pynvml.NVMLError as error:
        return missing(_why(error), _SOURCE, denied=error.value == pynvml.NVML_ERROR_NO_PERMISSION)
    except Exception as error:  # a binding that does not fit this driver: the other questions still count
        return missing(f"NVML's answer is not understood: {error}", _SOURCE)


def _text(call: str, *arguments: Any) -> str:
    """What a call writes into a buffer; other bytes than UTF-8 are replaced, where pynvml would raise."""
    buffer = ctypes.create_string_buffer(1024)
    pynvml._nvmlCheckReturn(pynvml._nvmlGetFunctionPointer(call)(*arguments, buffer, ctypes.c_uint(len(buffer))))
    return buffer.value.decode("utf-8", "replace")


def _why(error: Any) -> str:
    return f"NVML: {error} (error {error.value})"


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _reasons(handle: Any) -> tuple[str, ...]:
    mask = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return tuple(text for bit, text in _WAITING.items() if mask & bit)


def _fabric(handle: Any) -> str:
    info = pynvml.c_nvmlGpuFabricInfo_t()
    pynvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
    return _FABRIC.get(info.state, f"state {info.state}")


def _profiles(handle: Any) -> Iterator[MigProfile]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number)
        except pynvml.NVMLError_InvalidArgument:
            continue
        except pynvml.NVMLError as error:
            if number:
                continue
            raise error
        name = info.name.decode("utf-8", "replace") if isinstance(info.name, bytes) else str(info.name)
        yield MigProfile(name.removeprefix("MIG "), int(info.memorySizeMB), int(info.instanceCount))


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t from R470 on."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _OldProcess(ctypes.Structure):
    """nvmlProcessInfo_t before R470."""

    _fields_ = (("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong))


_LISTS: tuple[tuple[str, type[ctypes.Structure]], ...] = (("_v3", _Process), ("_v2", _Process), ("", _OldProcess))
"""The versions of the calls that list processes, the newest first, and what each fills."""


def _processes(handle: Any, now: float) -> Iterator[Process]:
    busy = _busy(handle, now)
    found: dict[int, Process] = {}
    for kind in ("Graphics", "Compute"):
        for pid, memory in _running(handle, f"nvmlDeviceGet{kind}RunningProcesses"):
            found[pid] = Process(pid, kind.lower(), memory, busy.get(pid), _name(pid))
    yield from found.values()


def _running(handle: Any, call: str) -> Iterator[tuple[int, int | None]]:
    """pid and bytes of each process; the driver's own newest form of the call is taken."""
    for suffix, kind in _LISTS:
        try:
            function = pynvml._nvmlGetFunctionPointer(call + suffix)
        except pynvml.NVMLError:
            continue
        count = ctypes.c_uint(0)
        code = function(handle, ctypes.byref(count), None)
        if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            count.value = count.value * 2 + 8  # more may start meanwhile
            rows = (kind * count.value)()
            code = function(handle, ctypes.byref(count), rows)
            if code == pynvml.NVML_SUCCESS:
                none = ctypes.c_ulonglong(-1).value
                yield from ((row.pid, None if row.memory == none else row.memory) for row in rows[: count.value])
        pynvml._nvmlCheckReturn(code)
        return
    raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)


def _busy(handle: Any, now: float) -> dict[int, float]:
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, max(int(now * 1e6) - _WINDOW, 0))
    except pynvml.NVMLError:
        return {}
    shares: dict[int, list[float]] = {}
    for sample in samples:
        if sample.smUtil <= 100:
            shares.setdefault(int(sample.pid), []).append(sample.smUtil / 100)
    return {pid: sum(values) / len(values) for pid, values in shares.items()}


def _name(pid: int) -> str:
    try:
        return _text("nvmlSystemGetProcessName", ctypes.c_uint(pid))
    except pynvml.NVMLError:
        return ""


def library() -> Reading[Library]:
    """libcuda as a program here would load it. Loads it; makes no context and does not even initialise CUDA."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return missing(f"libcuda.so.1 cannot be loaded: {error}", "libcuda.so.1", absent="No such file" in str(error))
    number = ctypes.c_int(0)
    offered = _cuda(number.value) if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0 else ""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
        paths = [line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line]
    path = os.path.realpath(paths[0]) if paths else "libcuda.so.1"
    version = Path(path).name.partition(".so.")[2]
    return known(Library(path, version if version.count(".") else "", offered), path)


if __name__ == "__main__":
    main()
