"""Writing to etcd itself, past the API server, by the JSON form of its own API."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

# etcd's limits for one transaction are 128 keys and 1.5 MiB, the latter with base64.
_KEYS = 128
_BYTES = 900_000

Entry = tuple[str, dict[str, Any]]


class Etcd:
    """A connection to the etcd at `url`."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)

    def put(self, entries: Iterable[Entry]) -> None:
        """Stores objects as JSON under their keys, which the API server reads as well as its own form."""
        batch: list[dict[str, Any]] = []
        length = 0
        for key, value in entries:
            data = json.dumps(value, separators=(",", ":")).encode()
            if batch and (len(batch) == _KEYS or length + len(data) > _BYTES):
                self._call("kv/txn", {"success": batch})
                batch, length = [], 0
            batch.append({"requestPut": {"key": _base64(key.encode()), "value": _base64(data)}})
            length += len(data)
        if batch:
            self._call("kv/txn", {"success": batch})

    def _call(self, method: str, body: Mapping[str, Any]) -> Any:
        self._connection.request("POST", f"/v3/{method}", json.dumps(body))
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise OSError(f"etcd refused {method}: {text.decode(errors='replace')[:300]}")
        return json.loads(text)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
