"""A small HTTP server that answers as it is told, also in ways that no API server should."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.sources.cluster import Access, Cluster

Answer = Callable[[str, int], bytes]
"""From the request line and the number of the request (from 1) to the bytes of the answer; b"" hangs up."""


@dataclass
class Server:
    """url: where it listens. requests: the heads of the requests that came, whole."""

    url: str
    requests: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        return [head.split("\r\n")[0] for head in self.requests]


@contextlib.contextmanager
def serve(answer: Answer) -> Iterator[Server]:
    """Serves on loopback until the block ends; each connection in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        server = Server(f"http://127.0.0.1:{listener.getsockname()[1]}")
        over = threading.Event()

        def talk(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                while not over.is_set() and (head := _head(connection)):
                    server.requests.append(head)
                    data = answer(head.split("\r\n")[0], len(server.requests))
                    if not data:
                        return
                    if data == HANG:
                        over.wait()
                        return
                    connection.sendall(data.removeprefix(DRIBBLE))
                    while data.startswith(DRIBBLE) and not over.wait(0.1):
                        connection.sendall(b" ")
                    if b"Connection: close" in data:
                        return

        def accept() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server
        finally:
            over.set()


HANG = b"hang"
DRIBBLE = b"dribble"
"""Before an answer: it goes on for ever, a blank at a time."""


def _head(connection: socket.socket) -> str:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return ""
        data += part
        if data[:1] == b"\x16":  # the first byte of a TLS handshake
            return "TLS"
    return data.partition(b"\r\n\r\n")[0].decode()


def reply(body: Any, status: int = 200, *headers: str) -> bytes:
    """An HTTP answer with a JSON body, or with the bytes given."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(data)}", "Content-Type: application/json", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data


def status(code: int, reason: str, message: str, **more: Any) -> dict[str, Any]:
    """Kubernetes' Status object."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message, **more}  # fmt: skip


def page(names: list[str], following: str = "", version: str = "7") -> dict[str, Any]:
    """A page of a list of pods."""
    return {
        "kind": "PodList",
        "metadata": {"resourceVersion": version, "continue": following},
        "items": [{"metadata": {"name": name, "namespace": "lab"}} for name in names],
    }


def cluster(url: str, timeout: float = 1.0, **more: Any) -> Cluster:
    """A source that asks this server."""
    return Cluster(Access(name="context test", server=url), timeout=timeout, **more)
