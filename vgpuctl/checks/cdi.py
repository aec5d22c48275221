"""Area runtime: CDI specifications."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model.cdi import CdiSpec
from vgpuctl.model.cuda import version
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.host import Host

_SHOWN = 3
_AGAIN = "nvidia-ctk cdi generate --output={path}, and again after each driver update"


def _cdi_spec(facts: Facts, options: Options) -> Iterator[Result]:
    host = facts.host.need()
    specs = [spec for spec in host.cdi.need() if spec.kind.endswith("nvidia.com/gpu")]
    if not specs:
        raise Skip("no CDI specification for NVIDIA cards here")
    faults = [fault for spec in specs for fault in (_stale(host, spec), _too_new(host, spec)) if fault]
    unnamed = _unnamed(facts, host, specs)
    yield from [*faults, *([unnamed] if unnamed else [])]
    if not faults and not unnamed:
        evidence = tuple(Evidence(spec.path, f"{spec.kind}: {', '.join(spec.devices)}") for spec in specs)
        yield Result(
            Status.PASS, f"{', '.join(spec.path for spec in specs)} describes this driver", host.name, evidence
        )


def _stale(host: Host, spec: CdiSpec) -> Result | None:
    loaded = host.driver.value.version if host.driver.value else ""
    others = [found for found in spec.drivers if loaded and found != loaded]
    if others:
        evidence = (
            Evidence(spec.path, f"libraries of {', '.join(others)}"),
            Evidence(host.driver.source, f"driver {loaded} is loaded"),
        )
        summary = f"{spec.path} was made for driver {others[0]}: containers that use it do not start"
        return Result(Status.FAIL, summary, host.name, evidence, _AGAIN.format(path=spec.path))
    if spec.absent and not host.container.value:
        gone = tuple(Evidence(path, "does not exist") for path in spec.absent[:_SHOWN])
        summary = f"{spec.path} names {len(spec.absent)} paths that do not exist: containers that use it do not start"
        return Result(Status.FAIL, summary, host.name, gone, _AGAIN.format(path=spec.path))
    return None


def _too_new(host: Host, spec: CdiSpec) -> Result | None:
    limit = host.cdi_limit.value
    try:
        newer = bool(limit) and version(spec.version) > version(limit or "")
    except ValueError:
        newer = False
    if not newer:
        return None
    evidence = (Evidence(spec.path, f"cdiVersion {spec.version}"), Evidence("container engine", f"CDI up to {limit}"))
    summary = (
        f"{spec.path} has CDI version {spec.version}, the engine understands {limit}: its devices are unresolvable"
    )
    remedy = "update the container engine, or stay on the previous toolkit and generate the specification again"
    return Result(Status.FAIL, summary, host.name, evidence, remedy)


def _unnamed(facts: Facts, host: Host, specs: list[CdiSpec]) -> Result | None:
    """Cards that no specification lists by UUID, which is how the plugin names them."""
    cards = facts.cards.value
    uuids = [card.uuid for card in cards] if cards else list(host.uuids.value or ())
    names = {name for spec in specs for name in spec.devices}
    lost = [uuid for uuid in uuids if uuid not in names]
    mode = host.toolkit.value.mode if host.toolkit.value else ""
    if not lost or mode == "legacy":
        return None
    evidence = tuple(Evidence(spec.path, f"{spec.kind}: {', '.join(spec.devices)}") for spec in specs)
    summary = f"no CDI specification has a device {lost[0]}: the plugin names cards by UUID"
    remedy = "nvidia-ctk cdi generate --device-name-strategy=uuid; compare with nvidia-ctk cdi list"
    status = Status.WARN if mode == "auto" else Status.FAIL
    return Result(status, summary, host.name, (*evidence, Evidence("driver", f"card {lost[0]}")), remedy)


CHECKS = (
    Check(
        "cdi-spec",
        "CDI specifications fit the driver, the cards' UUIDs and the container engine",
        "runtime",
        Status.FAIL,
        (Part.HOST,),
        (Where.MACHINE, Where.PROBE),
        _cdi_spec,
        also=(Part.CARDS,),
        explain="A specification is made once and goes stale with every driver update. Each card must be listed by the "
        "name that the plugin uses, its paths must exist, and its version must be one that the engine understands.",
    ),
)
