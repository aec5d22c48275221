"""What can go wrong between here and the API server, each as one line: what, why, what to do."""

from __future__ import annotations

from urllib.parse import unquote

import msgspec

from vgpuctl.model.problem import Exit, Problem


class Unreachable(Problem):
    """No usable answer: refused, unknown host, silent, TLS trouble, not a Kubernetes API."""

    passing = True


class Refused(Problem):
    """The API server answered with an error. status: the HTTP code. reason: Kubernetes' word, such as `NotFound`."""

    def __init__(self, status: int, reason: str, what: str, why: str, remedy: str, exit_code: Exit) -> None:
        super().__init__(what, why, remedy, exit_code)
        self.status = status
        self.reason = reason
        self.passing = exit_code is Exit.UNKNOWN and (status == 429 or status >= 500)


class Cause(msgspec.Struct, frozen=True):
    """One reason of a Status; `field` is the path in the object."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True):
    """The object that a Status is about, and the reasons."""

    name: str = ""
    causes: list[Cause] | None = None


class Status(msgspec.Struct, frozen=True):
    """Kubernetes' answer to a request that failed."""

    message: str = ""
    reason: str = ""
    details: Details | None = None


def status_of(body: bytes) -> Status | None:
    """The Status in an error's body; None when it is something else."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return status if status.message or status.reason else None


_UNTYPED = ("failed to create typed patch object", "failed to convert new object")
"""How server-side apply begins when a value is of the wrong type; it comes with code 500."""
_LONGEST = 400

_REMEDY = {
    401: "renew the credentials: the certificate or token may have expired",
    403: "ask an administrator for this right, or name another user, --context or -n NAMESPACE",
    429: "the API server is overloaded: try again later",
}


def refused(code: int, phrase: str, status: Status | None, request: str, server: str) -> Refused:
    """The error for an answer of 300 or above. request: such as `GET /api/v1/pods`."""
    if code == 401:
        what = f"{server} does not accept the credentials (401 Unauthorized)"
        return Refused(code, "Unauthorized", what, "", _REMEDY[401], Exit.UNKNOWN)
    if status is None:
        what = f"{server} answered {request} with {code} {phrase}".rstrip()
        remedy = _REMEDY.get(code, "is this the address of a Kubernetes API server?")
        return Refused(code, "", what, "that is not a Kubernetes answer", remedy, Exit.UNKNOWN)
    message = _short(status.message)
    what, why, remedy = _told(code, status, message, request, server)
    return Refused(code, status.reason, what, why, remedy, _exit(code, message))


def _told(code: int, status: Status, message: str, request: str, server: str) -> tuple[str, str, str]:
    name = _object(status, request)
    if "exceeded quota" in message:
        return f"{name} is refused by a quota", message, "raise the quota or ask for less"
    if code == 403 and _by_admission(message):
        return f"{name} is refused by admission", message, ""
    if code == 403:
        return "no permission", message, _REMEDY[403]
    if code == 409 and (managers := _managers(status)):
        fields = ", ".join(sorted({cause.field for cause in (status.details and status.details.causes) or []}))
        return (
            f"{name} conflicts with what {', '.join(managers)} manages",
            f"fields: {fields}",
            "leave these fields to them, or take them over by force",
        )
    if code == 409 and status.reason == "Conflict":
        return f"{name} was changed by someone else meanwhile", message, "run the command again"
    if code == 422 or message.startswith(_UNTYPED):
        return f"{name} is invalid", message.replace('"" is invalid: ', ""), ""
    if code == 429:
        return f"{server} is too busy", message, _REMEDY[429]
    if 400 <= code < 500:
        return f"{name}: {message}", "", ""
    return f"{server} failed to answer {request} ({code})", message, ""


def _exit(code: int, message: str) -> Exit:
    """An object that is refused is a finding; what could not be found out is unknown."""
    if code == 403:
        return Exit.FINDINGS if "exceeded quota" in message or _by_admission(message) else Exit.UNKNOWN
    if message.startswith(_UNTYPED):
        return Exit.FINDINGS
    return Exit.FINDINGS if code in (400, 404, 409, 413, 415, 422) else Exit.UNKNOWN


def _by_admission(message: str) -> bool:
    """Refused by an admission plugin, webhook or policy, not for want of a right (those read `User "…" cannot …`)."""
    return "cannot " not in message or "admission webhook" in message or "ValidatingAdmissionPolicy" in message


def _managers(status: Status) -> list[str]:
    """The other field managers of a server-side apply conflict, from messages such as `conflict with "kubectl" …`."""
    causes = (status.details.causes if status.details else None) or []
    names = [cause.message.split('"')[1] for cause in causes if cause.message.count('"') >= 2]
    return sorted(set(names)) if any(cause.reason == "FieldManagerConflict" for cause in causes) else []


def _object(status: Status, request: str) -> str:
    """The object of a request, such as `resourcequotas team-a/vgpu`, from the path that it went to."""
    words = request.partition("?")[0].split("/")
    words = words[4:] if words[1] == "apis" else words[3:]
    namespace = ""
    if words[:1] == ["namespaces"] and len(words) > 2:
        namespace, words = f"{words[1]}/", words[2:]
    name = unquote(words[1]) if len(words) > 1 else (status.details.name if status.details else "")
    return f"{words[0] if words else 'the object'} {namespace}{name}".strip()


def _short(message: str) -> str:
    """A message on one line; one that quotes the whole object loses its middle."""
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else f"{line[:100]} … {line[100 - _LONGEST :]}"
