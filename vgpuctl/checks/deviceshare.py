"""Checks of what the scheduler makes of its configuration and of the device configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.checks.config import CONTEXT, text_findings, text_results
from vgpuctl.model import annotation, configmaps, pool
from vgpuctl.model.config.kind import DEVICE, SCHEDULER
from vgpuctl.model.document import read_yaml
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.finding import Finding, Severity
from vgpuctl.model.pool import Text

_ADMISSION = "UnexpectedAdmissionError"
_IN_TURNS = 3
_DEFAULT = "deviceshare-arguments"
_SCHEDULER_RULES = {
    **dict.fromkeys(
        ("vgpu-off", "bool-value", "exclusive-options", "duplicate-plugin", "deprecated-key"), "deviceshare-enabled"
    ),
    **dict.fromkeys(("predicates-missing", "predicate-off"), "predicates-plugin"),
    "config-source-mismatch": "geometries-configmap",
}
"""Rule of the scheduler's configuration → the check that it belongs to; all others are the arguments'."""

_DECODING = frozenset(
    (
        "type-mismatch",
        "string-for-number",
        "string-for-bool",
        "mig-shape",
        "mig-unit",
        "number-range",
        "loaders-disagree",
        "unrendered-template",
        "foreign-format",
        "wrong-nesting",
        "key-case",
        "yaml-syntax",
        "yaml-tab",
        "invisible-character",
        "extra-document",
    )
)
"""Rules of the device configuration that leave the scheduler on its built-in defaults, or with empty values."""


def geometries(facts: Facts, options: Options) -> Iterator[Result]:
    """The device configuration as the scheduler gets it: there, decodable, and the same as the plugin's."""
    scheduler = pool.scheduler_config(facts)
    if scheduler is None and pool.plugin_config(facts) is None:
        raise Skip("there is neither a scheduler configuration nor a device configuration")
    space, name = pool.scheduler_device_place(facts)
    where = f"ConfigMap {space}/{name}"
    item = pool.configmap(facts, space, name)
    log = _complaint(facts)
    if item is None or pool.text_in(item, configmaps.DEVICE_KEY) is None:
        lacks = "does not exist" if item is None else f"has no key {configmaps.DEVICE_KEY}"
        yield Result(
            Status.FAIL,
            "the scheduler finds no device configuration and runs on its built-in defaults",
            where,
            (Evidence(where, lacks), *log),
            "create it there, or name another with deviceshare.KnownGeometriesCMName and …CMNamespace",
        )
        return
    text = pool.text_in(item, configmaps.DEVICE_KEY)
    assert text is not None
    broken = [
        found
        for found in text_findings(facts, text, DEVICE)
        if found.severity is Severity.ERROR and found.rule in _DECODING
    ]
    for result in text_results(text, broken):
        yield Result(
            Status.FAIL,
            f"the scheduler cannot use its device configuration: {result.summary}",
            where,
            (*result.evidence, *log),
            f"{result.remedy}; restart the scheduler".lstrip("; "),
        )
    if scheduler is not None:
        mismatch = [
            found for found in text_findings(facts, scheduler, SCHEDULER) if _owner(found) == "geometries-configmap"
        ]
        yield from text_results(scheduler, mismatch)
    plugin = pool.plugin_config(facts)
    if not broken and plugin is not None and plugin.map is not text.map and _values(plugin) != _values(text):
        yield Result(
            Status.FAIL,
            "scheduler and plugin read different device configurations",
            where,
            (Evidence("the scheduler reads", where), Evidence("the plugin reads", plugin.place)),
            "make them the same, and restart both",
        )


def schedule_policy(facts: Facts, options: Options) -> Iterator[Result]:
    """Binds that fail in turns: pods that are bound to one node at once take each other's devices."""
    names = pool.resource_names(facts)
    failed: dict[str, list[str]] = {}
    for pod in facts.pods.need():
        bad = pod.metadata.annotation(annotation.BIND_PHASE) == "failed" or pod.status.reason == _ADMISSION
        if bad and pod.spec.node_name and pool.is_vgpu_pod(pod, names):
            failed.setdefault(pod.spec.node_name, []).append(pool.full_name(pod.metadata))
    for node, pods in failed.items():
        if len(pods) >= _IN_TURNS:
            yield Result(
                Status.WARN,
                "one bind after the other fails here",
                f"Node {node}",
                (Evidence(f"Node {node}", f"{share.count(len(pods), 'pod')}: {share.some(pods)}"),),
                "deviceshare.NodeLockEnable: true binds one pod at a time; the policy spread keeps pods apart",
            )


def _values(text: Text) -> object:
    root = read_yaml(text.text)[0].root
    return root.plain() if root is not None else None


def _complaint(facts: Facts) -> tuple[Evidence, ...]:
    lines = [
        line for line in (facts.logs.value or {}).get("scheduler", "").splitlines() if "using default config" in line
    ]
    return (Evidence("scheduler log", " ".join(lines[-1].split())),) if lines else ()


def _owner(finding: Finding) -> str:
    return _SCHEDULER_RULES.get(finding.rule, _DEFAULT)


def _weighed(finding: Finding) -> Finding:
    """A file may say that vGPU is off; a pool for which it is off has none."""
    return msgspec.structs.replace(finding, severity=Severity.ERROR) if finding.rule == "vgpu-off" else finding


def _of_scheduler(check: str) -> Callable[[Facts, Options], Iterator[Result]]:
    """A check that is some of the scheduler configuration's rules."""

    def run(facts: Facts, options: Options) -> Iterator[Result]:
        text = pool.scheduler_config(facts)
        if text is None:
            raise Skip("no configuration of the scheduler was found")
        found = [finding for finding in text_findings(facts, text, SCHEDULER) if _owner(finding) == check]
        yield from text_results(text, [_weighed(finding) for finding in found])

    return run


_API = (Where.API,)

CHECKS = (
    Check(
        "deviceshare-enabled",
        "The scheduler shares vGPUs",
        "volcano",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        _of_scheduler("deviceshare-enabled"),
        also=CONTEXT,
        explain='deviceshare.VGPUEnable counts as true, "true" or "1"; with the older switches on the scheduler exits.',
    ),
    Check(
        _DEFAULT,
        "The scheduler's configuration is read as it is meant",
        "volcano",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        _of_scheduler(_DEFAULT),
        also=CONTEXT,
        explain="Misspelt arguments and quoted weights are ignored in silence; a policy without weight ranks no nodes.",
    ),
    Check(
        "predicates-plugin",
        "The scheduler filters nodes",
        "volcano",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        _of_scheduler("predicates-plugin"),
        also=CONTEXT,
    ),
    Check(
        "schedule-policy",
        "Pods do not fail in turns on a node",
        "volcano",
        Status.WARN,
        (Part.PODS,),
        _API,
        schedule_policy,
        also=(Part.CONFIGMAPS,),
        explain="The scheduler may bind several vGPU pods to one node before the plugin has served the first: they get "
        "each other's devices or fail at admission, and come again.",
    ),
    Check(
        "geometries-configmap",
        "The scheduler gets the device configuration, and the same as the plugin",
        "volcano",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        geometries,
        also=(*CONTEXT, Part.LOGS),
        explain="One value of a wrong type drops the whole file: the scheduler then runs on built-in defaults, and "
        "says so at high verbosity only.",
    ),
)
