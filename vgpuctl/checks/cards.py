"""Area driver, card by card: health, persistence, MIG."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.checks.check import Check, Evidence, Options, Result, Status, Where
from vgpuctl.model.annotation import REGISTER, decode_register
from vgpuctl.model.card import Card
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.proc import xid_of

_XIDS = {
    13: "a program's kernel made a bad access",
    31: "a program's memory access faulted",
    43: "a program was stopped by the card",
    45: "a program was ended while it ran",
    48: "double bit ECC error",
    63: "a page was retired or a row remapped",
    64: "a repair of memory failed",
    74: "NVLink error",
    79: "the card has fallen off the bus",
    92: "many corrected ECC errors",
    94: "contained ECC error",
    95: "uncontained ECC error",
    119: "the card's own processor (GSP) does not answer",
}
_PROGRAM = {13, 31, 43, 45}
"""Xids that faulty programs cause, not faulty cards."""
_SHOWN = 3


def _ecc_xid(facts: Facts, options: Options) -> Iterator[Result]:
    cards = facts.cards.need()
    sick = False
    for card in cards:
        faults = _faults(card)
        if faults:
            sick = True
            remedy = "drain the node and reset the card (nvidia-smi -r); replace it when the errors come back"
            summary = f"{card.model}: {faults[0].text}"
            yield Result(Status.WARN, summary, f"GPU {card.index}", tuple(faults), remedy)
    xids = facts.host.value.xids if facts.host.value else None
    lines = [line for line in (xids.value if xids and xids.value else ()) if xid_of(line)[1] not in _PROGRAM]
    if lines and xids:
        sick = True
        number = xid_of(lines[-1])[1]
        summary = (
            f"{len(lines)} Xid in the kernel log, the last: {number}, {_XIDS.get(number, 'see NVIDIA XID errors')}"
        )
        evidence = tuple(Evidence(xids.source, line) for line in lines[-_SHOWN:])
        yield Result(Status.WARN, summary, evidence=evidence, remedy="look up the Xid; drain and restart the node")
    if not sick:
        unread = "" if xids and xids.known else " (the kernel log could not be read)"
        summary = f"no uncorrected error, no pending repair, no throttling by heat or power fault{unread}"
        yield Result(Status.PASS, summary, evidence=(Evidence("NVML", f"{len(cards)} cards"),))


def _faults(card: Card) -> list[Evidence]:
    found = []
    if card.uncorrected.value:
        found.append(f"{card.uncorrected.value} uncorrected ECC errors since the driver was loaded")
    if card.remap_failed.value:
        found.append("remapping of memory rows failed: the card must be replaced")
    if card.remap_pending.value or card.pages_pending.value:
        found.append("a repair of its memory waits for a reset")
    slow = [reason for reason in card.throttled.value or () if reason != "power cap"]
    if slow:
        found.append(f"its clock is held down by {', '.join(slow)}")
    return [Evidence("NVML", text) for text in found]


def _persistence_mode(facts: Facts, options: Options) -> Result:
    cards = facts.cards.need()
    states = [(card.index, card.persistence.need()) for card in cards]
    off = [index for index, on in states if not on]
    evidence = tuple(Evidence("NVML", f"GPU {index}: {'on' if on else 'off'}") for index, on in states)
    if not off:
        return Result(Status.PASS, "on", evidence=evidence)
    command = ("nvidia-smi", "-pm", "1")
    fix = Change(
        Target("Host", " ".join(command)),
        How.COMMAND,
        command,
        lines=(Line("persistence mode", "off", "on"),),
        undo="nvidia-smi -pm 0",
        why="keep the driver's state while no program runs",
    )
    summary = (
        f"off on GPU {', '.join(map(str, off))}: each first program waits for the card to start, seconds on big ones"
    )
    return Result(
        Status.WARN, summary, evidence=evidence, remedy="nvidia-smi -pm 1, or run nvidia-persistenced", fix=(fix,)
    )


def _mig_mode(facts: Facts, options: Options) -> Iterator[Result]:
    cards = facts.cards.need()
    able = [card for card in cards if card.mig.known]
    wanted = _registered_modes(facts)
    fine = True
    for card in able:
        here, pending = card.mig.need(), card.mig_pending.value
        evidence = [Evidence("NVML", f"GPU {card.index}: MIG {_word(here)}, after a reset {_word(bool(pending))}")]
        if pending is not None and pending != here:
            fine = False
            summary = f"MIG will be {_word(pending)} after a reset, it is {_word(here)} now"
            yield Result(Status.FAIL, summary, f"GPU {card.index}", tuple(evidence), "drain the node; nvidia-smi -r")
        elif card.uuid in wanted and (wanted[card.uuid] == "mig") != here:
            fine = False
            evidence.append(Evidence(f"node annotation {REGISTER}", f"mode {wanted[card.uuid]}"))
            summary = f"MIG is {_word(here)}, but the pool uses the card in mode {wanted[card.uuid]}"
            remedy = f"nvidia-smi -i {card.index} -mig {int(not here)}, or change operatingmode in the node config"
            yield Result(Status.FAIL, summary, f"GPU {card.index}", tuple(evidence), remedy)
    if fine:
        on = [card.index for card in able if card.mig.value]
        summary = f"MIG is on for GPU {', '.join(map(str, on))}" if on else "MIG is off" if able else "no card has MIG"
        yield Result(Status.PASS, summary, evidence=(Evidence("NVML", f"{len(able)} of {len(cards)} cards have MIG"),))


def _word(on: bool) -> str:
    return "on" if on else "off"


def _registered_modes(facts: Facts) -> dict[str, str]:
    """The operating mode by card UUID, as the plugin registered this node's cards."""
    name = facts.host.value.name if facts.host.value else ""
    node = next((node for node in facts.nodes.value or () if node.metadata.name == name), None)
    text = node.metadata.annotation(REGISTER) if node else None
    return {card.uuid: card.mode for card in decode_register(text).cards} if text else {}


_HERE, _POD, _PROBE, _API = Where.MACHINE, Where.PLUGIN, Where.PROBE, Where.API
_AFTER = ("gpu-present", "driver-loaded", "nvml-usable")

CHECKS = (
    Check(
        "ecc-xid",
        "No uncorrected memory error, pending repair, Xid or throttling",
        "driver",
        Status.WARN,
        (Part.CARDS,),
        (_HERE, _POD, _PROBE),
        _ecc_xid,
        also=(Part.HOST,),
        after=_AFTER,
        explain="Reads ECC counters, retired pages, remapped rows and throttle reasons from NVML, and Xid lines of the "
        "kernel log. Xids that faulty programs cause are left out.",
    ),
    Check(
        "persistence-mode",
        "Persistence mode is on",
        "driver",
        Status.WARN,
        (Part.CARDS,),
        (_HERE, _POD),
        _persistence_mode,
        fixable=True,
        after=_AFTER,
        explain="Without it the driver drops the card's state when the last program ends, and every first program of a "
        "pod waits for it.",
    ),
    Check(
        "mig-mode",
        "Each card's MIG mode agrees with the pool's operating mode",
        "driver",
        Status.FAIL,
        (Part.CARDS,),
        (_HERE, _POD, _API),
        _mig_mode,
        also=(Part.HOST, Part.NODES),
        after=_AFTER,
        explain="A node in mode mig whose cards have MIG off (or the reverse) offers slices that do not exist.",
    ),
)
