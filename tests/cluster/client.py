"""A plain HTTPS client of the API server, for what the bench itself does: load, wait, remove."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from .certificates import Pair

APPLY = "application/apply-patch+yaml"
CONNECTIONS = 8  # at once, at most, where many objects are written
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused: `status` is the HTTP code, the text is its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Client:
    """Requests as one user; one connection for each thread, kept open. headers: sent with each request."""

    def __init__(
        self, server: str, ca: Path, user: Pair, *, timeout: float = 30.0, headers: Mapping[str, str] | None = None
    ) -> None:
        self._address = urlsplit(server)
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._timeout = timeout
        self._tls = ssl.create_default_context(cafile=str(ca))
        self._tls.load_cert_chain(user.certificate, user.key)
        self._local = threading.local()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """The decoded answer, or its text where it is not JSON.

        Raises ApiError for an answer of 400 or above, OSError or HTTPException without an answer.
        """
        if query:
            path = f"{path}?{urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        headers = dict(self._headers)
        if data is not None:
            headers["Content-Type"] = content_type
        response, text = self._send(method, path, data, headers)
        value: Any = text.decode(errors="replace")
        if response.headers.get_content_type() == "application/json":
            value = json.loads(text)
        if response.status >= 400:
            raise ApiError(response.status, value["message"] if isinstance(value, dict) else value)
        return value

    def get(self, path: str, **query: str) -> Any:
        return self.request("GET", path, query=query)

    def post(self, path: str, body: object) -> Any:
        return self.request("POST", path, body)

    def delete(self, path: str, *, grace: int | None = None, **query: str) -> None:
        """Deletes an object or, for the path of a collection, all of it; what is not there is fine."""
        if grace is not None:
            query["gracePeriodSeconds"] = str(grace)
        try:
            self.request("DELETE", path, query=query)
        except ApiError as error:
            if error.status != 404:
                raise

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str = "bench") -> Any:
        """Server-side apply: creates the object or brings it to this state."""
        query = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", path, body, content_type=APPLY, query=query)

    def _send(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        kept: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        connection = kept or http.client.HTTPSConnection(
            str(self._address.hostname), self._address.port, context=self._tls, timeout=self._timeout
        )
        self._local.connection = None
        try:
            connection.request(method, path, data, dict(headers))
            response = connection.getresponse()
            text = response.read()
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            connection.close()
            if kept is None:
                raise
            # A kept connection dies with an API server that was restarted: try once on a new one.
            return self._send(method, path, data, headers)
        except BaseException:
            connection.close()
            raise
        self._local.connection = connection
        return response, text
