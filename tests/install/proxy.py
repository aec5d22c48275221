"""Stands before an API server, counts what is written, and can do something at a chosen write.

Clients reach it without TLS, on loopback, and are administrators; it passes everything on, watches as well. A write is
a request that the API server keeps something of: reviews and dry runs are none.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.cluster.bench import Bench

_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")
_REVIEWS = ("accessreviews", "subjectreviews", "rulesreviews")

Hook = Callable[[int], None]


class Proxy:
    """Before one bench. after: called once a write was made and before its answer is given, with the write's number."""

    def __init__(self, bench: Bench, after: Hook | None = None) -> None:
        self._bench = bench
        self._after = after
        self._lock = threading.Lock()
        self.writes: list[str] = []

    def __enter__(self) -> Proxy:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True  # as the API server broke off, so does this

            def log_message(self, *_: Any) -> None:
                pass

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return lambda: proxy._pass_on(self)
                raise AttributeError(name)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig whose cluster is this proxy."""
        config = yaml.safe_load(self._bench.kubeconfig.read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._server.server_address[1]}"}
        path.write_text(yaml.safe_dump(config))
        return path

    def _pass_on(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length) if length else None
        headers = {key: value for key, value in request.headers.items() if key.lower() not in (*_HOP, "host")}
        address = urlsplit(self._bench.url)
        connection = http.client.HTTPSConnection(
            str(address.hostname), address.port, context=self._bench.administrator_tls(), timeout=60
        )
        try:
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            if _writes(request.command, request.path):
                self._wrote(f"{request.command} {request.path} {answer.status}")
            self._answer(request, answer)
        finally:
            connection.close()

    def _wrote(self, what: str) -> None:
        with self._lock:
            self.writes.append(what)
            number = len(self.writes)
        if self._after is not None:
            self._after(number)

    @staticmethod
    def _answer(request: BaseHTTPRequestHandler, answer: http.client.HTTPResponse) -> None:
        request.send_response_only(answer.status, answer.reason)
        for key, value in answer.getheaders():
            if key.lower() not in _HOP:
                request.send_header(key, value)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while chunk := answer.read1(1 << 16):
            request.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        request.wfile.write(b"0\r\n\r\n")


def _writes(method: str, path: str) -> bool:
    parts = urlsplit(path)
    reviews = parts.path.rpartition("/")[2].endswith(_REVIEWS)
    return method != "GET" and not reviews and "dryRun" not in parse_qs(parts.query)
