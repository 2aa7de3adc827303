"""What a server sees of its clients: the context of a span, and that a request is given up; and what the clients make of what it says."""

import asyncio
import json
import re
import socket
import threading

import grpc
import pytest
import scripted_grpc
import spans
from scripted_triton import ROW, answer, serve

import tritongen
from tritongen.errors import AccessDenied, DeadlineExceeded, InferenceError, ModelNotFound, Overloaded, ServerError

ENOUGH_S = 20.0


@pytest.fixture
def talking():
    """The same model over gRPC."""
    with scripted_grpc.serve() as script:
        yield script


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_the_context_of_a_span_arrives_at_the_server(triton, talking, run, protocol):
    carried = []

    def carrying(request, context):
        carried.append(dict(context.invocation_metadata()))
        return scripted_grpc.answer(request, context)

    async def use(client):
        with spans.provider().get_tracer("test").start_as_current_span("caller") as span:
            await client.infer("m", x=ROW)
            _ = [result async for result in client.infer_many("m", [{"x": ROW}])]
            return span.get_span_context().trace_id

    talking.infer = carrying
    wanted = run(use, triton.url if protocol == "http" else talking.url)
    carried += [asked.headers for asked in triton.asked]
    traces = [int(headers["traceparent"].split("-")[1], 16) for headers in carried]
    assert traces == [wanted] * 2
    assert len({headers["traceparent"] for headers in carried}) == 2


def test_a_cancelled_task_ends_its_request_on_the_server(talking):
    arrived, over, given_up = threading.Event(), threading.Event(), []

    def hold(request, context):
        arrived.set()
        given_up.append(talking.cancelled.wait(ENOUGH_S))
        over.set()
        return scripted_grpc.answer(request, context)

    async def cancel():
        async with tritongen.AsyncClient(talking.url) as client:
            task = asyncio.ensure_future(client.infer("m", x=ROW, deadline_s=60))
            assert await asyncio.to_thread(arrived.wait, ENOUGH_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(over.wait, ENOUGH_S)

    talking.infer = hold
    asyncio.run(cancel())
    assert given_up == [True]


def test_a_cancelled_task_ends_its_connection_over_http(triton):
    arrived, over, given_up = threading.Event(), threading.Event(), []

    def hold(asked):
        arrived.set()
        given_up.append(asked.is_given_up())
        over.set()
        return 200, {}, b""

    async def cancel():
        async with tritongen.AsyncClient(triton.url) as client:
            task = asyncio.ensure_future(client.infer("m", x=ROW, deadline_s=60))
            assert await asyncio.to_thread(arrived.wait, ENOUGH_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(over.wait, ENOUGH_S)

    triton.infer = hold
    asyncio.run(cancel())
    assert given_up == [True]


def error_of(run, url, **options):
    async def use(client):
        with pytest.raises(InferenceError) as error:
            await client.infer("m", x=ROW)
        return error.value

    return run(use, url, retries=0, **options)


BETWEEN = [
    (302, ServerError, "give the address that it names"),
    (407, AccessDenied, "a proxy in between wants credentials"),
    (408, ServerError, "send smaller requests"),
    (413, ServerError, "client_max_body_size"),
    (429, Overloaded, "send fewer requests at once"),
]


@pytest.mark.parametrize(("status", "kind", "hint"), BETWEEN, ids=[str(item[0]) for item in BETWEEN])
def test_what_something_in_between_says_comes_with_what_to_do(triton, run, status, kind, hint):
    triton.infer = lambda asked: (status, {}, b"<html>no</html>")
    error = error_of(run, triton.url)
    assert type(error) is kind
    assert hint in error.hint


def test_an_exhausted_server_means_the_same_over_both_protocols(talking, run):
    talking.infer = lambda _, context: context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many")
    error = error_of(run, talking.url)
    assert type(error) is Overloaded
    assert "send fewer requests at once" in error.hint


def test_a_secret_that_a_server_of_grpc_says_again_is_not_shown(talking, run):
    talking.infer = lambda _, context: context.abort(grpc.StatusCode.PERMISSION_DENIED, "wrong: Bearer t0k3n-of-nobody")
    error = error_of(run, talking.url, token="t0k3n-of-nobody")
    assert str(error).endswith("wrong: [not shown]")
    link = error
    while link is not None:
        assert "t0k3n" not in repr(link) + str(link)
        link = link.__cause__ or link.__context__


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_request_whose_headers_are_too_long_says_so(triton, talking, run, protocol):
    """Triton closes the connection over HTTP; over gRPC it answers as if it had too much to do."""

    def refuse(asked):
        if "x-long" in asked.headers:
            asked.connection.shutdown(socket.SHUT_RDWR)
        return answer()

    async def use(client):
        await client.infer("m", x=ROW)
        with pytest.raises(InferenceError) as error:
            await client.infer("m", x=ROW, headers={"x-long": "a" * 20_000})
        return error.value

    triton.infer = refuse
    error = run(use, triton.url if protocol == "http" else talking.url, retries=0)
    assert re.search(r"its headers are too long: they take 20\d{3} bytes, and Triton surely takes 8192", error.hint)


def test_a_load_that_fails_says_on_which_servers_and_where_it_was_done(triton, run):
    def load(model, **options):
        async def use(client):
            with pytest.raises(InferenceError) as error:
                await client.load(model, **options)
            return error.value

        return use

    with serve() as second, serve() as third:
        second.loading = (500, {}, json.dumps({"error": "no such file"}).encode())
        urls = [triton.url, second.url, third.url]
        error = run(load("m"), urls)
        assert isinstance(error, ServerError)
        assert str(error) == f"{second.url}: no such file; model 'm' was loaded by {triton.url}, {third.url}"
        third.loading = (500, {}, json.dumps({"error": "no room"}).encode())
        both = run(load("m"), urls)
        assert str(both) == f"{second.url}: no such file; {third.url} failed too: {third.url}: no room; model 'm' was loaded by {triton.url}"
        nothing = run(load("nothing"), urls[1:])
        assert isinstance(nothing, ModelNotFound)
        assert "model 'nothing' was loaded by no server" in str(nothing)


def test_a_server_that_hangs_keeps_no_other_from_loading(triton, run, hole):
    async def use(client):
        with pytest.raises(DeadlineExceeded) as error:
            await client.load("m", deadline_s=2.0)
        return str(error.value)

    assert run(use, [f"http://127.0.0.1:{hole}", triton.url]).endswith(f"model 'm' was loaded by {triton.url}")


def test_a_model_is_bound_and_described_within_its_deadline(triton, run):
    async def use(client):
        model = await client.model("m", deadline_s=5)
        return (await client.meta("m")).name, model.name

    assert run(use, triton.url) == ("m", "m")
