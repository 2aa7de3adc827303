"""Servers with TLS that answer as a Triton does when it is asked what it is, for tests of clients."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import certificates
import grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

LOCALHOST = Path(__file__).with_name("localhost.pem")
"""A certificate of localhost with its key, which is its own issuer."""
NAME = "triton"


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps({"name": NAME, "version": "2", "extensions": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Nothing is printed."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_) -> None:
        """A handshake that fails is what some tests want."""


class _Servicer(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ServerMetadata(self, request, context):  # noqa: N802 - its name in the protocol
        return pb.ServerMetadataResponse(name=NAME, version="2")


@contextlib.contextmanager
def serve(protocol: str, *, mutual: bool = False):
    """The address of a server with TLS; `mutual`: it wants the certificate of `certificates.CERT` from its clients."""
    with (_serve_grpc if protocol == "grpc" else _serve_http)(mutual=mutual) as port:
        yield f"{protocol}s://localhost:{port}"


@contextlib.contextmanager
def _serve_http(*, mutual: bool):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(LOCALHOST)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=certificates.CERT)
    server = _Server(("127.0.0.1", 0), _Answers)
    server.daemon_threads = True
    # Not in accept(): a client that never shakes hands must not hold up the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def _serve_grpc(*, mutual: bool):
    pem = LOCALHOST.read_bytes()
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(_Servicer(), server)
        roots = certificates.CERT.encode() if mutual else None
        port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(pem, pem)], roots, require_client_auth=mutual))
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()
