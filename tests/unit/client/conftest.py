"""A server that answers as a test wants, and one way to drive both clients."""

from __future__ import annotations

import asyncio
import inspect
import socket

import pytest
import scripted_triton

import tritongen


@pytest.fixture
def triton():
    with scripted_triton.serve() as script:
        yield script


@pytest.fixture
def gone():
    """A port of this machine where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def hole():
    """A port whose connections are made and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(params=["blocking", "asyncio"])
def run(request):
    """Runs a test's coroutine function with a client of either kind, in which what blocks may be awaited as well."""

    def call(function, url, **options):
        async def main():
            if request.param == "asyncio":
                async with tritongen.AsyncClient(url, **options) as client:
                    return await function(client)
            with tritongen.Client(url, **options) as client:
                return await function(_Awaitable(client))

        return asyncio.run(main())

    return call


class _Awaitable:
    """A blocking client, or what it gave, whose methods are those of one for asyncio. They block the event loop, in which nothing else runs."""

    def __init__(self, target) -> None:
        self._target = target

    def __getattr__(self, name):
        value = getattr(self._target, name)
        return _awaitable(value, name) if inspect.ismethod(value) else value

    async def __aenter__(self):
        self._target.__enter__()
        return self

    async def __aexit__(self, *error) -> None:
        self._target.__exit__(*error)


def _awaitable(method, name):
    if name in ("sequence", "infer_many", "stream"):
        return lambda *arguments, **options: _again(method(*arguments, **options))

    async def call(*arguments, **options):
        found = method(*arguments, **options)
        return _Awaitable(found) if name == "model" else found

    return call


def _again(value):
    return _steps(value) if inspect.isgenerator(value) else _Awaitable(value)


async def _steps(generator):
    try:
        for item in generator:
            yield item
    finally:
        generator.close()
