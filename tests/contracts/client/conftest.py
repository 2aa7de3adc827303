"""One server for the contract of the clients, and the four clients that must all keep it."""

from __future__ import annotations

import contract
import pytest


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    contract.fill(folder)
    return folder


@pytest.fixture(scope="module")
def server(repository):
    with contract.serve(repository) as running:
        yield running


@pytest.fixture
def gate(repository):
    """Closes the gate of a slow model."""
    return lambda model: contract.Gate(repository / model)


@pytest.fixture(params=contract.KINDS)
def kind(request):
    return request.param


@pytest.fixture
def url(server, kind):
    return server.grpc_url if kind.startswith("grpc") else server.http_url


@pytest.fixture
def client(kind, url):
    with contract.make_client(kind, url) as made:
        yield made
