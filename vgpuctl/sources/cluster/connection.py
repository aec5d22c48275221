"""HTTP to one API server: kept connections, a deadline for each request, every failure one clear line."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InsecureRequestWarning,
    LocationParseError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from vgpuctl import __version__
from vgpuctl.model.problem import Problem
from vgpuctl.sources.cluster.credentials import Credentials, credentials, expiry
from vgpuctl.sources.cluster.errors import Refused, Unreachable, refused, status_of
from vgpuctl.sources.cluster.kubeconfig import Access

_CHUNK = 1 << 18
_KEPT = 50
_FOREVER = 24 * 3600.0
_STAYS_DOWN = 2.0
"""Seconds for which a server that could not be reached is not tried again: many readers, one wait."""
_FIT_FOR_HEADER = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_HOLDS = {"Authorization": "check the token of the kubeconfig's user, or what its plugin gives"}


class Connection:
    """Requests to an access's API server. timeout: seconds for a whole request, 0 for no limit."""

    def __init__(self, access: Access, timeout: float = 10.0) -> None:
        self.access = access
        self.timeout = timeout
        self._lock = threading.Lock()
        self._pool: urllib3.PoolManager | None = None
        self._credentials = Credentials()
        self._answered = False
        self._down: tuple[float, Problem] | None = None

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """The body of the answer. Raises Unreachable, Refused, or Problem when there are no credentials."""
        deadline = self._deadline()
        response = self.open(method, path, query, body, content_type, deadline)
        chunks = []
        try:
            for chunk in _chunks(response):
                chunks.append(chunk)
                if time.monotonic() > deadline:
                    raise self._silent(f"{method} {path}")
        except (HTTPError, OSError, ValueError) as error:
            response.close()
            if method == "GET" and time.monotonic() < deadline and isinstance(error, ProtocolError):
                return self._again(path, query, deadline)
            raise self._unreachable(error, f"{method} {path}") from None
        except Unreachable:
            response.close()
            raise
        response.release_conn()
        return b"".join(chunks)

    def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        deadline: float | None = None,
        silence: float = 0.0,
    ) -> urllib3.BaseHTTPResponse:
        """The answer with its body unread; errors of 300 and above are raised. Waits when told to by Retry-After.

        silence: seconds that the body may pause, 0 for as long as the request has.
        """
        deadline = self._deadline() if deadline is None else deadline
        renewed = False
        while True:
            response = self._send(method, path, query, body, content_type, deadline, silence)
            if response.status < 300:
                return response
            error, wait = self._failure(response, f"{method} {path}")
            if error.status == 401:
                if not renewed and (renewed := self._renew()):
                    continue
                error.why = expiry(self._credentials.certificate, time.time())
            retry = error.status == 429 or (error.status == 503 and method == "GET")
            if not (retry and wait and time.monotonic() + wait < deadline):
                raise error
            time.sleep(wait)

    def close(self) -> None:
        """Closes the kept connections."""
        if self._pool is not None:
            self._pool.clear()

    def _deadline(self) -> float:
        return time.monotonic() + (self.timeout or _FOREVER)

    def _again(self, path: str, query: Mapping[str, str] | None, deadline: float) -> bytes:
        """Reads once more what broke off in the middle."""
        response = self.open("GET", path, query, deadline=deadline)
        try:
            data = response.data
        except (HTTPError, OSError, ValueError) as error:
            raise self._unreachable(error, f"GET {path}") from None
        return data

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        deadline: float,
        silence: float,
    ) -> urllib3.BaseHTTPResponse:
        pool = self._ready()
        headers = self._headers(None if body is None else content_type)
        url = f"{self.access.server}{path}" + (f"?{urlencode(query)}" if query else "")
        tries = 2 if method == "GET" else 1
        while True:
            tries -= 1
            left = max(0.001, deadline - time.monotonic())
            try:
                response = pool.request(
                    method,
                    url,
                    body=body,
                    headers=headers,
                    timeout=urllib3.Timeout(connect=left, read=silence or left),
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
            except (ProtocolError, SSLError) as error:
                # A kept connection may have died since, a handshake may have broken off: one more try, on a new one.
                if tries and time.monotonic() < deadline:
                    continue
                raise self._unreachable(error, f"{method} {path}") from None
            except (HTTPError, OSError, ValueError) as error:
                raise self._unreachable(error, f"{method} {path}") from None
            self._answered = True
            return response

    def _ready(self) -> urllib3.PoolManager:
        with self._lock:
            if self._down and time.monotonic() - self._down[0] < _STAYS_DOWN:
                raise self._down[1]
            if self._pool is None:
                _check_url(self.access)
                self._credentials = self._resolve()
                self._pool = _pool(self.access, self._credentials)
            return self._pool

    def _resolve(self) -> Credentials:
        try:
            return credentials(self.access, self.timeout)
        except Problem as problem:
            self._down = (time.monotonic(), problem)
            raise

    def _renew(self) -> bool:
        """Reads the credentials anew; whether they differ from those that were refused."""
        with self._lock:
            fresh = self._resolve()
            if fresh == self._credentials:
                return False
            self._credentials, self._pool = fresh, _pool(self.access, fresh)
            return True

    def _headers(self, content_type: str | None) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict(
            {
                "Accept": "application/json",
                "User-Agent": f"vgpuctl/{__version__}",
                "Accept-Encoding": "identity" if _is_loopback(self.access.server) else "gzip",
            }
        )
        if content_type:
            headers["Content-Type"] = content_type
        if self._credentials.authorization:
            headers["Authorization"] = self._credentials.authorization
        for name, value in self.access.headers:
            headers.add(name, value)
        for name, value in headers.items():
            if not _FIT_FOR_HEADER.fullmatch(value):  # urllib3 would quote it, and it may be a secret
                what = f"the {name} header of {self.access.name} cannot be sent"
                raise Problem(what, "it holds a line break or a character outside Latin-1", _HOLDS.get(name, ""))
        return headers

    def _failure(self, response: urllib3.BaseHTTPResponse, request: str) -> tuple[Refused, float]:
        """The error that an answer tells, and the seconds that it asks to wait."""
        body = b""
        with contextlib.suppress(HTTPError, OSError, ValueError):
            body = response.read(1 << 20)
            response.drain_conn()
        response.close()
        status = status_of(body)
        error = refused(response.status, response.reason or "", status, request, self.access.server)
        wait = response.headers.get("Retry-After", "")
        return error, float(wait) if wait.isdigit() else 0.0

    def _silent(self, request: str) -> Unreachable:
        asked = f" {request}" if self._answered else ""
        return self._note_down(
            Unreachable(
                f"{self.access.server} did not answer{asked} within {self.timeout:g} s",
                remedy="is it overloaded? --request-timeout waits longer",
            )
        )

    def _unreachable(self, error: Exception, request: str) -> Unreachable:
        timed_out = isinstance(error, (ReadTimeoutError, ConnectTimeoutError, TimeoutError))
        if timed_out and not isinstance(error, NewConnectionError):  # which is a ConnectTimeoutError to urllib3
            return self._silent(request)
        why, remedy = _explain(error, self.access)
        return self._note_down(Unreachable(f"cannot reach {self.access.server} ({self.access.name})", why, remedy))

    def _note_down(self, error: Unreachable) -> Unreachable:
        if not self._answered:
            self._down = (time.monotonic(), error)
        return error


def _check_url(access: Access) -> None:
    """Raises Unreachable for an address that no request can be sent to."""
    try:
        parts = urlsplit(access.server)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise Unreachable(
            f"cannot reach {access.server} ({access.name})",
            "the address is not a URL of http or https",
            "check the server of the kubeconfig",
        )


def _chunks(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The body as it comes. An API server sends it in chunks of 4 KiB, which read1 takes three times as long for."""
    if getattr(response, "chunked", False):
        yield from response.read_chunked()
    else:
        while chunk := response.read1(_CHUNK):
            yield chunk


def _explain(error: Exception, access: Access) -> tuple[str, str]:
    """Why a request failed and what to do, in plain words."""
    text = " ".join(str(error).split())
    if isinstance(error, ProxyError):
        return f"the proxy does not work: {text}", "see proxy-url of the kubeconfig, HTTPS_PROXY and NO_PROXY"
    if isinstance(error, NameResolutionError):
        return f"the host name {urlsplit(access.server).hostname!r} is unknown", "check the server of the kubeconfig"
    if isinstance(error, NewConnectionError):
        why = "connection refused" if "refused" in text else text.rpartition("] ")[2] or text
        return why, "is the API server running, and the address right?"
    if isinstance(error, (SSLError, ssl.SSLError)):
        return _explain_tls(error, access)
    if isinstance(error, ProtocolError):
        return f"the connection broke: {_inner(error)}", "try again; is this an API server?"
    if isinstance(error, (LocationParseError, ValueError)):
        return f"the address is not a URL: {text}", "check the server of the kubeconfig"
    return text or type(error).__name__, ""


def _explain_tls(error: Exception, access: Access) -> tuple[str, str]:
    text = _inner(error)
    for sign, why, remedy in (
        ("certificate has expired", "its certificate has expired", "renew the API server's certificate"),
        ("CERTIFICATE_VERIFY_FAILED", "", "check certificate-authority and tls-server-name of the kubeconfig"),
        ("WRONG_VERSION_NUMBER", "it does not speak TLS", "is the server's address http:// instead?"),
        ("certificate expired", "it refuses our expired client certificate", "renew the client certificate"),
    ):
        if sign in text:
            return why or f"its certificate is not trusted: {text.partition('failed: ')[2] or text}", remedy
    return f"TLS failed: {text}", ""


def _inner(error: BaseException) -> str:
    """The innermost reason of nested exceptions, on one line."""
    inner = next((part for part in reversed(error.args) if isinstance(part, BaseException)), None)
    return _inner(inner) if inner is not None else " ".join(str(error).split())


def _pool(access: Access, given: Credentials) -> urllib3.PoolManager:
    options: dict[str, Any] = {"maxsize": _KEPT, "ssl_context": _tls(access, given)}
    if access.server_name:
        options |= {"server_hostname": access.server_name, "assert_hostname": access.server_name}
    if access.insecure:
        urllib3.disable_warnings(InsecureRequestWarning)  # it is what the kubeconfig asks for
        options |= {"cert_reqs": "CERT_NONE", "assert_hostname": False}
    proxy = access.proxy or _environment_proxy(access.server)
    if not proxy:
        return urllib3.PoolManager(**options)
    try:
        if proxy.startswith("socks"):
            import_module("socks")  # without it urllib3 warns, in lines of its own
            from urllib3.contrib.socks import SOCKSProxyManager

            return SOCKSProxyManager(proxy, **options)
        return urllib3.ProxyManager(proxy, **options)
    except ImportError:
        raise Problem(f"the proxy {proxy} needs SOCKS", remedy="pip install pysocks") from None
    except (HTTPError, ValueError) as error:
        raise Problem(f"{proxy!r} is not a proxy's URL", str(error)) from None


def _tls(access: Access, given: Credentials) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.ca.decode() if access.ca else None)
        # Strict checks of RFC 5280 (Python 3.13) refuse the CA certificates of many running clusters.
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise Problem("the kubeconfig's certificate-authority is not a PEM certificate", str(error)) from None
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if given.certificate:
        with tempfile.NamedTemporaryFile(mode="wb", prefix="vgpuctl-") as file:  # mode 0600, gone at once
            file.write(given.certificate + b"\n" + given.key)
            file.flush()
            try:
                context.load_cert_chain(file.name)
            except (ssl.SSLError, ValueError) as error:
                raise Problem("the client certificate or its key cannot be used", _inner(error)) from None
    return context


def _environment_proxy(server: str) -> str:
    """The proxy of the environment, as Go's http.ProxyFromEnvironment picks it: never for this machine."""
    scheme = urlsplit(server).scheme
    proxy = os.environ.get(f"{scheme.upper()}_PROXY") or os.environ.get(f"{scheme}_proxy") or ""
    if not proxy or _is_loopback(server):
        return ""
    from requests.utils import should_bypass_proxies

    if should_bypass_proxies(server, None):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
