"""The fields that the Kubernetes API (1.36) and Volcano know, by level: what is in no list is a slip."""

from __future__ import annotations

from typing import Final


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


METADATA: Final = words(
    "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation "
    "labels managedFields name namespace ownerReferences resourceVersion selfLink uid"
)
POD_SPEC: Final = words(
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
    "hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority "
    "priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName "
    "schedulingGates schedulingGroup workloadRef securityContext serviceAccount serviceAccountName "
    "setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations "
    "topologySpreadConstraints volumes"
)
CONTAINER: Final = words(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy "
    "resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath "
    "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
RESOURCES: Final = frozenset(("claims", "limits", "requests"))
ENV: Final = frozenset(("name", "value", "valueFrom"))
SECURITY: Final = words(
    "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem runAsGroup "
    "runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions"
)
OBJECT: Final = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))
TEMPLATE: Final = frozenset(("metadata", "spec", "apiVersion", "kind"))

_COMMON = "minReadySeconds replicas revisionHistoryLimit selector template"
_TASKS = (
    "schedulerName minAvailable volumes tasks policies plugins runningEstimate queue maxRetry "
    "ttlSecondsAfterFinished priorityClassName minSuccess networkTopology"
)
WORKLOAD_SPECS: Final = {
    "Deployment": words(f"{_COMMON} paused progressDeadlineSeconds strategy"),
    "ReplicaSet": words(_COMMON),
    "ReplicationController": words(_COMMON),
    "StatefulSet": words(
        f"{_COMMON} ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy serviceName updateStrategy "
        "volumeClaimTemplates"
    ),
    "DaemonSet": words("minReadySeconds revisionHistoryLimit selector template updateStrategy"),
    "Job": words(
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector "
        "maxFailedIndexes parallelism podFailurePolicy podReplacementPolicy scheduling selector successPolicy suspend "
        "template ttlSecondsAfterFinished"
    ),
    "CronJob": words(
        "concurrencyPolicy failedJobsHistoryLimit jobTemplate schedule startingDeadlineSeconds "
        "successfulJobsHistoryLimit suspend timeZone"
    ),
    "VolcanoJob": words(_TASKS),
}
TASK: Final = words("name replicas minAvailable template policies topologyPolicy maxRetry dependsOn partitionPolicy")
