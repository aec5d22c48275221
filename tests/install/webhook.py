"""An admission webhook that refuses: an HTTPS server of the test, and its configuration in the cluster."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.cluster.bench import Bench

_PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/refuses"


@contextlib.contextmanager
def refusing(bench: Bench, group: str, resource: str, namespace: str, message: str) -> Iterator[None]:
    """While inside, creating and changing such objects in a namespace is refused with this message; with an empty one
    the webhook does not answer at all."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": message}}
            body = json.dumps({**{key: review[key] for key in ("apiVersion", "kind")}, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pair = bench.authority.issue("webhook", hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    if message:
        thread.start()
    else:
        server.server_close()
    rules = [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}]
    hook = {
        "name": "refuses.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.server_address[1]}/",
            "caBundle": base64.b64encode(bench.authority.certificate.read_bytes()).decode(),
        },
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    try:
        bench.client.apply(_PATH, {**kind, "metadata": {"name": "refuses"}, "webhooks": [hook]})
        yield
    finally:
        bench.client.delete(_PATH)
        if message:
            server.shutdown()
            server.server_close()
            thread.join()
