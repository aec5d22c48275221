"""Checks of the pool's configuration: the rules of `config validate` on what runs, and where it lies."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.checks import mend, share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.checks.lint import STATUS
from vgpuctl.model import configmaps, pool
from vgpuctl.model.config import device, node
from vgpuctl.model.config.kind import DEVICE, NODE, Kind
from vgpuctl.model.config.shape import Section
from vgpuctl.model.config.validate import validate
from vgpuctl.model.document import read_json, read_yaml
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.finding import Finding, Severity
from vgpuctl.model.pool import Text


def text_findings(facts: Facts, text: Text, kind: Kind) -> list[Finding]:
    return validate(text.text, text.key, pool.context(facts), kind).findings


def text_results(text: Text, found: list[Finding]) -> Iterator[Result]:
    for finding in found:
        if finding.severity in STATUS:
            place = f"{text.key}:{finding.line}" if finding.line else text.key
            yield Result(
                STATUS[finding.severity],
                finding.message,
                text.place,
                (Evidence(text.place, f"{place} {finding.path} ({finding.rule})".replace("  ", " ")),),
                finding.remedy,
            )


def device_config(facts: Facts, options: Options) -> Iterator[Result]:
    text = pool.plugin_config(facts)
    if text is not None:
        yield from text_results(text, text_findings(facts, text, DEVICE))
        return
    if not facts.daemonsets.known or not pool.plugin_daemonsets(facts):
        raise Skip("there is no device configuration, and no plugin that wants one")
    places = " and ".join(f"{space}/{configmaps.DEVICE}" for space in configmaps.PLUGIN_NAMESPACES)
    yield Result(
        Status.FAIL,
        "there is no device configuration: the plugin has no factor and crashes",
        evidence=(Evidence("ConfigMaps", f"looked at {places}"),),
        remedy="vgpuctl config generate --for device-config",
    )


def node_config(facts: Facts, options: Options) -> Iterator[Result]:
    text = pool.node_config(facts)
    if text is None:
        raise Skip("there is no node configuration")
    yield from text_results(text, text_findings(facts, text, NODE))


def place(facts: Facts, options: Options) -> Iterator[Result]:
    copies = [
        text
        for space in configmaps.PLUGIN_NAMESPACES
        if (text := pool.text_in(pool.configmap(facts, space, configmaps.DEVICE), configmaps.DEVICE_KEY))
    ]
    if not copies:
        raise Skip("there is no device configuration")
    scheduler = pool.scheduler_device_place(facts)
    if len(copies) > 1:
        same = copies[0].text == copies[1].text
        yield Result(
            Status.WARN if same else Status.FAIL,
            "there are two device configurations" + (", alike for now" if same else " that differ"),
            evidence=(
                Evidence("the plugin reads", copies[0].place),
                Evidence("the scheduler reads", f"ConfigMap {'/'.join(scheduler)}"),
            ),
            remedy=f"keep the one in {copies[0].map.metadata.namespace} and delete the other",
        )
        return
    have = (copies[0].map.metadata.namespace, copies[0].map.metadata.name)
    if scheduler != have and pool.configmap(facts, *scheduler) is None:
        yield Result(
            Status.FAIL,
            "the scheduler looks for the device configuration where there is none, and runs on its defaults",
            copies[0].place,
            (
                Evidence("the scheduler looks at", f"ConfigMap {'/'.join(scheduler)}"),
                Evidence("the plugin reads", copies[0].place),
            ),
            "set deviceshare.KnownGeometriesCMNamespace and …CMName to it, and restart the scheduler",
        )


def drift(facts: Facts, options: Options) -> Iterator[Result]:
    """What the plugins registered against the number of vGPUs that the configuration wants."""
    text = pool.plugin_config(facts)
    if text is None:
        raise Skip("there is no device configuration")
    section = device.read(read_yaml(text.text)[0]).nvidia
    split = section.get("deviceSplitCount") if section else None
    own = _own_splits(facts)
    broken = _broken(facts, text)
    pods = pool.plugin_pods(facts) if facts.pods.known and not broken else []
    for gpu in share.registered(facts):
        wanted = own.get(gpu.name) or split
        counts = sorted({card.count for card in gpu.cards if card.mode != "mig"})
        if isinstance(wanted, int) and wanted > 0 and counts and counts != [wanted]:
            subject, now = share.node_subject(gpu), ", ".join(map(str, counts))
            yield Result(
                Status.WARN,
                "the plugin runs with another number of vGPUs per card than is configured",
                subject,
                (Evidence(text.place, f"{wanted} vGPUs per card"), Evidence(subject, f"registered with {now}")),
                broken or "restart the plugin pod of this node",
                mend.restart(pods, gpu.name, f"configure {now} vGPUs per card again, and restart the plugin there"),
            )


def _broken(facts: Facts, text: Text) -> str:
    """Why a restart would do harm: the plugin would not live with the configuration as it stands; "" for nothing."""
    found = text_findings(facts, text, DEVICE)
    own = pool.node_config(facts)
    found += text_findings(facts, own, NODE) if own else []
    worst = next((one for one in found if one.severity is Severity.ERROR), None)
    return f"mend the configuration first ({worst.rule}), then restart the plugin pod" if worst else ""


def _own_splits(facts: Facts) -> dict[str, int]:
    """devicesplitcount of the node configuration, by node."""
    text = pool.node_config(facts)
    if text is None:
        return {}
    entries = [entry.value for entry in node.read(read_json(text.text)).entries]
    return {
        str(entry.get("name")): int(entry.get("devicesplitcount") or 0)
        for entry in entries
        if isinstance(entry, Section)
    }


def mig_table(facts: Facts, options: Options) -> Iterator[Result]:
    """knownMigGeometries against the profiles that the driver of this machine lists."""
    host = facts.host.value
    profiles = {profile.name: profile for profile in host.mig_profiles.value or ()} if host else {}
    if host is None or not profiles:
        raise Skip("the driver's MIG profiles can be read on a node with MIG cards only")
    text = pool.plugin_config(facts)
    section = device.read(read_yaml(text.text)[0]).nvidia if text else None
    if text is None or section is None:
        raise Skip("there is no device configuration")
    for entry in section.sections("knownMigGeometries"):
        for group in entry.value.sections("allowedGeometries"):
            for instance in group.value.sections("geometries"):
                name, memory, count = (instance.value.get(key) for key in ("name", "memory", "count"))
                profile = profiles.get(str(name))
                evidence = (
                    Evidence(
                        text.place,
                        f"{configmaps.DEVICE_KEY}:{instance.place.line} {name}: memory {memory}, count {count}",
                    ),
                )
                if profile is None:
                    continue
                told = Evidence("nvidia-smi mig -lgip", f"{name}: {profile.memory} MiB, at most {profile.count}")
                if isinstance(memory, int) and memory > profile.memory:
                    yield Result(
                        Status.WARN,
                        f"slice {name} has less memory than the table says: pods run out of it below their request",
                        text.place,
                        (*evidence, told, *_too_big(facts, profile.memory)),
                        f"memory: {profile.memory}; restart plugin and scheduler",
                    )
                if isinstance(count, int) and count > profile.count:
                    yield Result(
                        Status.WARN,
                        f"the table has more slices {name} than fit on a card",
                        text.place,
                        (*evidence, told),
                        f"count: {profile.count} or less; restart plugin and scheduler",
                    )


def _too_big(facts: Facts, memory: int) -> Iterator[Evidence]:
    """Pods that hold more in a slice than the slice has."""
    factor = pool.memory_factor(facts) or 1
    for pod in facts.pods.value or ():
        found = pool.allocations(pod)
        held = [item for item in found.all if item.slice and memory < item.memory * factor] if found else []
        if held:
            yield Evidence(share.pod_subject(pod), f"holds {held[0].memory * factor} MiB in slice {held[0].slice}")


CONTEXT = (Part.NODES, Part.DEPLOYMENTS, Part.PODS, Part.QUEUES)
"""What the rules of `config validate` use of the pool when it is there."""
_API = (Where.API,)

CHECKS = (
    Check(
        "device-config",
        "The device configuration keeps every rule",
        "config",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        device_config,
        also=(*CONTEXT, Part.DAEMONSETS),
    ),
    Check(
        "node-config",
        "The node configuration keeps every rule",
        "config",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        node_config,
        also=CONTEXT,
    ),
    Check(
        "config-place",
        "Plugin and scheduler find the device configuration in one place",
        "config",
        Status.FAIL,
        (Part.CONFIGMAPS,),
        _API,
        place,
        also=(Part.DEPLOYMENTS,),
        explain="The plugin looks in kube-system, then in volcano-system; the scheduler where its arguments say, by "
        "default in kube-system only.",
    ),
    Check(
        "config-drift",
        "What runs is what is configured",
        "config",
        Status.WARN,
        (Part.CONFIGMAPS, Part.NODES),
        _API,
        drift,
        also=(Part.PODS,),
        fixable=True,
        explain="A fix deletes the plugin's pod of the node, which its DaemonSet makes anew with the configuration as "
        "it stands now; pods with vGPUs run on. It is not offered while that configuration breaks a rule.",
    ),
    Check(
        "mig-table",
        "The MIG table agrees with the profiles that the driver lists",
        "config",
        Status.WARN,
        (Part.CONFIGMAPS, Part.HOST),
        (Where.MACHINE, Where.PLUGIN),
        mig_table,
        also=(Part.PODS,),
    ),
)
