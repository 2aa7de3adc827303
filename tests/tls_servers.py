"""Servers with TLS that answer as a Triton does when it is asked what it is, for tests of clients."""

from __future__ import annotations

import contextlib
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import certificates
import grpc
import scripted_triton
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

LOCALHOST = Path(__file__).with_name("localhost.pem")
"""A certificate of localhost with its key, which is its own issuer."""
NAME = "triton"


class _Servicer(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ServerMetadata(self, request, context):  # noqa: N802 - its name in the protocol
        return pb.ServerMetadataResponse(name=NAME, version="2")


@contextlib.contextmanager
def serve(protocol: str, *, mutual: bool = False):
    """The address of a server with TLS; `mutual`: it wants the certificate of `certificates.CERT` from its clients."""
    if protocol == "grpc":
        with _serve_grpc(mutual=mutual) as url:
            yield url
        return
    with scripted_triton.serve(context(mutual=mutual)) as script:
        yield script.url


def context(*, mutual: bool) -> ssl.SSLContext:
    """What a server of HTTP has for TLS."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(LOCALHOST)
    if mutual:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=certificates.CERT)
    return made


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
            yield f"grpcs://localhost:{port}"
        finally:
            server.stop(None).wait()
