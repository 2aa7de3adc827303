"""Users for plain Locust (`locust -f FILE`) that send to Triton over gRPC or HTTP and report each request as Locust's own event.

A user sends its next request when the last one was answered: a closed loop, in which a server that stands still is asked less. Where the tail matters, use
`tritongen load`, which sends on a schedule; these users are for scenarios.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, ClassVar

import gevent
from gevent import GreenletExit
from locust import User, events
from locust.env import Environment

from tritongen.client import Client, ModelMeta, Result
from tritongen.client.endpoint import parse_url
from tritongen.client.requests import array_bytes, prepare
from tritongen.client.sync import InferenceSequence
from tritongen.errors import InputError, TritongenError, Unsupported
from tritongen.load.greenlets import check_side_by_side, set_up_grpc
from tritongen.load.payloads import make_pool
from tritongen.load.plan import LoadPlan, ModelLoad, problem, read
from tritongen.load.stock import Request, Stock, Values, mixed, test_of
from tritongen.spec.traffic import parse_sizes

log = logging.getLogger("tritongen.load")


_LAST_ANSWERS_S = 2.0
"""Seconds in which users that are to stop get the answers that are under way, where `--stop-timeout` gives them none."""


def _set_times(environment: Environment, **_: Any) -> None:
    """Has gevent look at the clock, and lets users that are to stop get their last answers.

    gevent counts the time of timers from when it last looked, which is before locustfiles are imported: `--run-time` would be over so much sooner, and a short
    test before its first request. Requests that are cancelled as they are answered may end a Triton of before 25.06 (known issue `crash-when-cancelled`).
    """
    gevent.get_hub().loop.update_now()
    environment.stop_timeout = environment.stop_timeout or _LAST_ANSWERS_S


_begun: Any = events.init  # Locust types none of its hooks
_begun.add_listener(_set_times)


class _TritonUser(User):
    """What users of both protocols have in common; see `TritonGrpcUser`."""

    abstract = True
    protocol: ClassVar[str]

    model: str = ""
    version: str = ""
    rows: int | str = 1
    shapes: Mapping[str, tuple[int, ...]] | str = {}
    inputs: Values | Callable[[], Values] | None = None
    pool: int = 64
    seed: int = 0
    deadline_s: float = 10.0
    models: Sequence[ModelLoad] = ()
    client: Client | None = None

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        # Around the methods of the whole class, whoever overrides them: without super() in one of them, users would send nothing, and the test would pass.
        self.__dict__.update(on_start=partial(self._begin, self.on_start), on_stop=partial(self._end, self.on_stop))

    def _begin(self, own: Callable[[], None]) -> None:
        """Connects, and with the first user of a process prepares payloads and checks that requests do not wait for one another; then calls its own on_start.

        Where the test cannot be run, its reason is logged, and the run ends with exit code 2 (wrong input) or 3 (server, model or machine).
        """
        self._set_up()
        with ExitStack() as failed:
            failed.callback(self._close)
            own()
            failed.pop_all()

    def _end(self, own: Callable[[], None]) -> None:
        """Calls its own on_stop, unless nothing was begun, and closes the connection."""
        try:
            if self.client is not None:
                own()
        finally:
            self._close()

    def _close(self) -> None:
        """An open channel of gRPC's would keep the process from ending."""
        if self.client is not None:
            self.client.close()
            self.client = None

    def _set_up(self) -> None:
        test = test_of(self.environment)
        try:
            with test.lock:
                if test.refused:
                    raise GreenletExit
                if type(self) not in test.stocks:
                    test.stocks[type(self)] = self._prepare()
            self._stock = test.stocks[type(self)]
            # Asked now, so that no timed request has to connect first, or to ask about the model.
            self.client = self._connect()
            for load in self._stock.models:
                self.client.meta(load.model, load.version)
        except TritongenError as error:
            if not test.refused:
                test.refused = True
                _refuse(self, error)
            # What ends a user here quietly: Locust logs a traceback for its own StopUser.
            raise GreenletExit from error

    def infer(self, inputs: Values | None = None, *, name: str = "", sequence: InferenceSequence | None = None, **options: Any) -> Result | None:
        """Sends one request and reports it to Locust; its result, or None where it failed.

        Args:
            inputs: by name; the next payload that was prepared where they are left out.
            name: what Locust's tables call the request; the model's name by default.
            sequence: what it is the next request of, made by `self.client.sequence(...)`, for models that keep state; with `end=True` the last one.
            options: of `Client.infer`, such as `priority=` and `parameters=`.

        The response time is that of the whole call, in milliseconds with fractions; the size is that of the output tensors, in bytes.
        """
        request = self._next(inputs)
        started, begin = time.time(), time.perf_counter()
        try:
            if sequence is None:
                result = self._open.infer(request.model, request.inputs, version=request.version, **options)
            else:
                result = sequence.infer(request.inputs, **options)
        except TritongenError as error:
            self._report(name or request.model, started, begin, 0, error)
            return None
        self._report(name or request.model, started, begin, _size(result), None)
        return result

    @property
    def _open(self) -> Client:
        if self.client is None:
            raise GreenletExit
        return self.client

    def _next(self, inputs: Values | None) -> Request:
        request = next(self._stock.requests)
        return request if inputs is None else request._replace(inputs=inputs)

    def _report(self, name: str, started: float, begin: float, size: int, error: TritongenError | None) -> None:
        self.environment.events.request.fire(
            request_type=self.protocol,
            name=name,
            response_time=(time.perf_counter() - begin) * 1000,
            response_length=size,
            exception=error,
            start_time=started,
            context=self.context(),
        )

    def _connect(self) -> Client:
        """A client that sends each request once: retries would hide failures and lengthen what is measured."""
        return Client(self.host or "", deadline_s=self.deadline_s, retries=0)

    def _prepare(self) -> Stock:
        """Everything that must be right before the first request. Raises TritongenError."""
        endpoint = parse_url(self.host or "")
        if endpoint.protocol != self.protocol:
            hint = f"give --host {self.protocol}://…; where classes of both protocols run, give each its own `host` and leave --host out"
            raise problem(f"{type(self).__name__} sends over {self.protocol}, and its host is {endpoint.url}", hint)
        if self.protocol == "grpc":
            set_up_grpc()
        check_side_by_side(self.protocol)
        loads = tuple(self.models)
        pools = []
        with closing(self._connect()) as client:
            if not loads:
                loads = (self._only_load(self.model or _only_model(client)),)
            for load in loads:
                meta = client.meta(load.model, load.version)
                if meta.decoupled and self.protocol == "http":
                    raise Unsupported(f"model '{load.model}' is decoupled, and HTTP carries no streams of tensors", hint="use TritonGrpcUser and its stream()")
                pools.append(self._payloads(load, meta))
        return Stock(loads, mixed(loads, pools, self.seed))

    def _only_load(self, model: str) -> ModelLoad:
        """What is sent to the one model of a class that mixes none. Raises InputError (TG420)."""
        shapes = read_shapes(self.shapes)
        return ModelLoad(model, self.version, batch_mix=((read_rows(self.rows), 1.0),), shape_mix=((shapes, 1.0),) if shapes else ())

    def _payloads(self, load: ModelLoad, meta: ModelMeta) -> Sequence[Values]:
        """The inputs of `pool` requests. Raises InputError, InvalidInput."""
        if self.inputs is None:
            payloads = make_pool(LoadPlan((load,), self.host or "", pool=self.pool, seed=self.seed), load, meta)
            for sentence in payloads.left_out:
                log.warning(sentence)
            return payloads.requests
        values = [self.inputs() for _ in range(self.pool)] if callable(self.inputs) else [self.inputs]
        return [prepare(meta, one).arrays for one in values]


class TritonGrpcUser(_TritonUser):
    """A user that sends to Triton over gRPC. gRPC is told of gevent by the first of them.

    Example, as a locustfile:
        >>> class Reader(TritonGrpcUser):  # doctest: +SKIP
        ...     host, model = "grpc://localhost:8001", "recognizer"
        ...
        ...     @task
        ...     def read(self):
        ...         self.infer()

    Attributes:
        host: the server's address, `grpc://host:8001` or `grpcs://…`; Locust's `--host` wins.
        model: the model's name; empty for the only one that the server has ready.
        version: its version; empty for the server's choice.
        inputs: values by input name, or a method that makes some; None for seeded random ones, and the values of `samples` in the model's spec.
        rows: rows of a request, where `inputs` is left out and the model batches.
        shapes: sizes of variable dimensions by input, without the batch dimension, as a mapping or a text such as `x=3x48x320,ids=128`.
        pool: how many different requests are prepared before the first one is sent.
        seed: of random values.
        deadline_s: seconds after which a request is given up.
        models: several models with their parts, batch sizes and shapes, which are mixed at random in place of `model`, `version`, `rows` and `shapes`.
        client: the user's own connection, open in on_start, tasks and on_stop; these may be overridden without calling `super()`.
    """

    abstract = True
    protocol = "grpc"

    def stream(self, inputs: Values | None = None, *, name: str = "") -> int | None:
        """Sends one request and reads every response to it, for decoupled models; how many there were, or None where it failed.

        Locust gets two entries: NAME with ` (first response)` is the time until the first one, and NAME the time until the last one and the size of all. A
        stream that fails is a failure of the second. `inputs` and `name` are as in `infer`.
        """
        request = self._next(inputs)
        what = name or request.model
        started, begin = time.time(), time.perf_counter()
        count = size = 0
        try:
            for response in self._open.stream(request.model, request.inputs, version=request.version):
                count, length = count + 1, _size(response)
                size += length
                if count == 1:
                    self._report(f"{what} (first response)", started, begin, length, None)
        except TritongenError as error:
            self._report(what, started, begin, size, error)
            return None
        self._report(what, started, begin, size, None)
        return count


class TritonHttpUser(_TritonUser):
    """A user that sends to Triton over HTTP, to a `host` such as `http://localhost:8000` or `https://…`; else as `TritonGrpcUser`, without streams."""

    abstract = True
    protocol = "http"


def read_rows(rows: int | str) -> int:
    """A number of rows. Raises InputError (TG420) for what is none."""
    text = str(rows)
    if not text.isdecimal() or not int(text):
        raise problem(f"{text[:40]!r} is no number of rows", "give a whole number from 1 on")
    return int(text)


def read_shapes(shapes: Mapping[str, tuple[int, ...]] | str) -> dict[str, tuple[int, ...]]:
    """Sizes by input name from a mapping, or from a text such as `x=3x48x320,ids=128`. Raises InputError (TG420)."""
    if not isinstance(shapes, str):
        return {name: tuple(sizes) for name, sizes in shapes.items()}
    found: dict[str, tuple[int, ...]] = {}
    for entry in filter(None, (part.strip() for part in shapes.split(","))):
        name, _, sizes = entry.rpartition("=")
        if not name:
            raise problem(f"{entry[:60]!r} is no shape of an input", "write NAME=3x48x320, with commas between inputs")
        found[name] = read(parse_sizes, sizes)
    return found


def _only_model(client: Client) -> str:
    names = sorted({str(entry["name"]) for entry in client.repository_index(ready=True)})
    if len(names) != 1:
        have = ", ".join(names[:20]) or "none"
        raise problem(f"no model is named, and the server has {len(names)} that are ready: {have}", "set `model` of the user class (MODEL for loadtests/)")
    return names[0]


def _size(result: Result) -> int:
    return sum(map(array_bytes, result.values()))


def _refuse(user: _TritonUser, error: TritongenError) -> None:
    """Say why the test cannot be run, here and at the master, and end it."""
    hints = [found.hint for found in error.diagnostics] if isinstance(error, InputError) else [error.hint]
    log.error("%s: the test cannot be run: %s%s", type(user).__name__, error, "".join(f"\n  hint: {hint}" for hint in dict.fromkeys(hints) if hint))
    environment = user.environment
    environment.process_exit_code = error.exit_code
    environment.events.user_error.fire(user_instance=user, exception=error, tb=None)
    if environment.runner is not None:
        # From another greenlet: it ends the one of this user as well.
        gevent.spawn(environment.runner.quit)
