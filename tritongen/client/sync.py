"""The blocking client."""

from __future__ import annotations

import contextlib
import contextvars
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar

from tritongen.client import calls, tracing
from tritongen.client.arguments import bound_to, check_requests, check_window, merged, named
from tritongen.client.calls import CallFailed
from tritongen.client.control import control
from tritongen.client.core import Core, Settings
from tritongen.client.endpoint import Tls, make_access, parse_urls
from tritongen.client.flow import Flow, Transport, run
from tritongen.client.health import Health, health, holds, wait_ready
from tritongen.client.inference import infer, new_sequence_id
from tritongen.client.metadata import ModelMeta
from tritongen.client.options import Options, common_options, make_request
from tritongen.client.requests import Cast
from tritongen.client.result import Result
from tritongen.client.sequence import SequenceState, Step
from tritongen.client.streaming import answer_of, open_stream, reopen_stream
from tritongen.client.thread_pool import ThreadPool
from tritongen.errors import TritongenError

T = TypeVar("T")


class Client:
    """Talks to Triton, over the protocol that its address names. May be shared by threads.

    Example:
        >>> with Client("grpc://localhost:8001") as client:  # doctest: +SKIP
        ...     scores = client.infer("recognizer", x=image)["scores"]
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        deadline_s: float = 60.0,
        retries: int = 3,
        idempotent: bool = False,
        token: str | None = None,
        tls: Tls | None = None,
        headers: Mapping[str, str] | None = None,
        compression: Literal["gzip", "deflate"] | None = None,
        window: int = 16,
    ) -> None:
        """Makes a client; nothing is connected yet.

        Args:
            url: `grpc://host:8001`, `http://host:8000`, `grpcs://…` or `https://…`; several of one protocol share the requests.
            deadline_s: seconds that a call may take with all its retries, where the call says nothing else.
            retries: how often a request that was certainly not executed is sent again; never more often than a tenth of what succeeds.
            idempotent: requests may be executed twice: those whose connection was lost are sent again too.
            token: sent as `authorization: Bearer …`.
            tls: certificates, for grpcs:// and https://.
            headers: sent with every request.
            compression: of requests, and of answers where the server can.
            window: requests under way at once for one `infer` that is split, and for `infer_many`.

        Raises InputError (TG060, TG067, TG069, TG080) for an argument that cannot be used.
        """
        settings = Settings(deadline_s, retries, idempotent, compression, window)
        self._core = Core(parse_urls(url), make_access(token, tls, headers), settings)
        self._transports = [_transport(self._core, index) for index in range(len(self._core.endpoints))]

    def infer(
        self,
        model: str,
        inputs: Mapping[str, object] | None = None,
        /,
        *,
        version: str = "",
        outputs: Sequence[str] | None = None,
        priority: int | None = None,
        deadline_s: float | None = None,
        request_id: str = "",
        parameters: Mapping[str, str | int | float | bool] | None = None,
        headers: Mapping[str, str] | None = None,
        cast: Cast = "exact",
        add_batch_axis: bool = False,
        idempotent: bool | None = None,
        **tensors: object,
    ) -> Result:
        """Sends one request and returns its outputs by name.

        A batch with more rows than the model takes at once is cut, sent side by side and put together again.

        Args:
            model: the model's name.
            inputs: arrays, plain numbers, text or nested lists by input name, the batch dimension included; for names that are no identifiers.
            version: the model's version; empty for the one that the server chooses.
            outputs: names of the outputs to return; None for all.
            priority: level in the model's queue, 1 the highest; None for the model's default.
            deadline_s: seconds for all of it.
            request_id: comes back with the answer, and stands in the server's log.
            parameters: of the request, for backends that read some.
            headers: of this request.
            cast: `"safe"` converts arrays whose dtype numpy can convert without loss; `"exact"` refuses them.
            add_batch_axis: inputs may come without their batch dimension, as one row.
            idempotent: as for the client; None for the client's.
            tensors: inputs whose names are identifiers.

        Raises InvalidInput where the request does not fit the model, DeadlineExceeded, and InferenceError's other kinds.
        """
        options = Options(version, outputs, priority, deadline_s, request_id, parameters, headers, cast, add_batch_axis, idempotent)
        return run(infer(self._core, model, tensors if inputs is None else merged(inputs, tensors), options), self._transports)

    def infer_many(self, model: str, requests: Iterable[Mapping[str, object]], /, *, window: int | None = None, **options: Any) -> Iterator[Result]:
        """Sends a request for each mapping of inputs and yields the results in their order.

        At most `window` requests are under way, and `requests` is read no further ahead; `options` are those of `infer`. They share the client's own window for
        those that are cut: with as many requests under way, each sends its parts one after another. The first error ends it: one that `requests` itself raises
        comes after the results of what it gave before.

        A blocking client yields nothing while it waits for `requests`, and leaving its loop sends nothing more: what is under way goes on in threads that
        nobody waits for, not even the end of Python, until it is answered or its deadline is over. In asyncio results are yielded meanwhile where `requests` is
        an asynchronous iterable, and closing the iterator cancels what is under way.

        Raises InvalidInput and InputError at once for arguments that are none.
        """
        check_requests(requests, Iterable)
        window = self._core.settings.window if window is None else check_window(window)
        return self._many(model, iter(requests), window, *common_options(model, options))

    def stream(
        self,
        model: str,
        inputs: Mapping[str, object] | None = None,
        /,
        *,
        version: str = "",
        outputs: Sequence[str] | None = None,
        priority: int | None = None,
        deadline_s: float | None = None,
        request_id: str = "",
        parameters: Mapping[str, str | int | float | bool] | None = None,
        headers: Mapping[str, str] | None = None,
        cast: Cast = "exact",
        add_batch_axis: bool = False,
        **tensors: object,
    ) -> Iterator[Result]:
        """Sends one request and yields every response to it: for decoupled models, over gRPC only.

        Closing the iterator cancels the request: leaving a `for` loop does it where nothing else refers to it, and in asyncio `contextlib.aclosing`.

        The arguments are those of `infer`; `deadline_s` bounds all responses together. Raises as `infer` does; Unsupported over HTTP.
        """
        options = Options(version, outputs, priority, deadline_s, request_id, parameters, headers, cast, add_batch_axis)
        with tracing.detached_span(model) as span:
            request = make_request(self._core, model, merged(inputs, tensors), options, span)
            opened = self._run(open_stream(self._core, request))
            begun = False
            while True:
                try:
                    replies = self._transports[opened.about.index].stream(opened.call, opened.deadline.left, opened.about.headers)
                    with contextlib.closing(replies):
                        for reply in replies:
                            if not begun:
                                begun = True
                                self._core.answered(opened.about.index)
                            yield answer_of(opened, reply)
                    return
                except CallFailed as failure:
                    opened = self._run(reopen_stream(self._core, opened, failure, begun=begun))

    def sequence(self, model: str, /, *, sequence_id: int | str | None = None, version: str = "") -> InferenceSequence:
        """A sequence of requests that one instance of a stateful model answers, to be used in a `with` block.

        The first request that reaches a server carries START, and all others go there. A request with `end=True` carries END; where none did, leaving the block
        sends the last inputs once more with END, and drops the answer: else the server would keep the sequence's slot until it has been idle for long enough.
        What reached no server has not begun, and is not ended. `sequence_id`: None for a new one.
        """
        return InferenceSequence(self, model, version, new_sequence_id() if sequence_id is None else sequence_id)

    def model(self, name: str, /, version: str = "", *, deadline_s: float | None = None) -> Model:
        """A model of the server, described by it now. Raises InferenceError where it is not there or not ready."""
        self.meta(name, version, deadline_s=deadline_s)
        return Model(self, name, version)

    def meta(self, model: str, /, version: str = "", *, deadline_s: float | None = None) -> ModelMeta:
        """What the server says about a model, asked now.

        Raises ModelNotFound where it has none of that name (with the names that it has), ModelNotReady where it is not loaded (with the server's reason).
        """
        return (self._run(self._core.describe(model, version, self._core.deadline(deadline_s)))).meta

    def metadata(self, *, deadline_s: float | None = None) -> Mapping[str, Any]:
        """The server's name, version and extensions."""
        return self._ask(calls.ServerMetadata(), deadline_s)  # type: ignore[no-any-return]

    def config(self, model: str, /, version: str = "", *, deadline_s: float | None = None) -> Mapping[str, Any]:
        """A model's whole configuration, in ModelConfig's own field names."""
        return self._ask(calls.ModelConfiguration(model, version), deadline_s)  # type: ignore[no-any-return]

    def statistics(self, model: str = "", /, version: str = "", *, deadline_s: float | None = None) -> Sequence[Mapping[str, Any]]:
        """Counts and times of a model's versions, or of all models; durations in nanoseconds."""
        return self._ask(calls.ModelStatistics(model, version), deadline_s)  # type: ignore[no-any-return]

    def repository_index(self, *, ready: bool = False, deadline_s: float | None = None) -> Sequence[Mapping[str, Any]]:
        """Every version of every model that the server knows (only those that are `ready`): name, and where it says them version, state and reason."""
        return self._ask(calls.RepositoryIndex(ready), deadline_s)  # type: ignore[no-any-return]

    def load(
        self, model: str, /, *, config: str | Mapping[str, Any] = "", files: Mapping[str, bytes | str] | None = None, deadline_s: float | None = None
    ) -> None:
        """Loads or reloads a model, on every server of the client at once; they must run with `--model-control-mode explicit`.

        `config` is a ModelConfig as JSON or as a mapping, in place of the model's own; `files` are contents by `<version>/<name>`, in place of the model's
        folder, which need a config.
        """
        self._run(control(self._core, calls.load_model(model, config, files), self._core.deadline(deadline_s)))

    def unload(self, model: str, /, *, dependents: bool = False, deadline_s: float | None = None) -> None:
        """Unloads a model, and with `dependents` those that it is an ensemble of. Returns before it is gone, on every server of the client at once."""
        self._run(control(self._core, calls.UnloadModel(model, dependents), self._core.deadline(deadline_s)))

    def health(self, *, deadline_s: float | None = None) -> Health:
        """Whether any server of the client runs, and whether one is ready with all its models."""
        return self._run(health(self._core, self._core.deadline(deadline_s)))

    def live(self, *, deadline_s: float | None = None) -> bool:
        """Whether the server runs. False where it cannot be reached."""
        return self._run(holds(self._core, calls.ServerLive(), self._core.deadline(deadline_s)))

    def ready(self, model: str = "", /, version: str = "", *, deadline_s: float | None = None) -> bool:
        """Whether a model, or the server with all its models, is ready. False where it cannot be reached."""
        return self._run(holds(self._core, calls.readiness(model, version), self._core.deadline(deadline_s)))

    def wait_ready(self, model: str = "", /, version: str = "", *, deadline_s: float | None = None) -> None:
        """Returns when a model, or the server with all its models, is ready. Raises DeadlineExceeded with the server's reason where it is not."""
        self._run(wait_ready(self._core, model, version, self._core.deadline(deadline_s)))

    def close(self) -> None:
        """Give connections back, in asyncio after the ends of sequences whose tasks were cancelled, which take two seconds at most.

        Closing twice does nothing; any other call afterwards raises InferenceError. A sequence whose block is still open is not ended any more: leave it first.
        """
        for transport in self._transports:
            transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({', '.join(endpoint.url for endpoint in self._core.endpoints)})"

    def _many(self, model: str, requests: Iterator[Mapping[str, object]], limit: int, options: Options, tensors: Mapping[str, object]) -> Iterator[Result]:
        waiting: deque[Future[Result]] = deque()
        pool = ThreadPool[Result](limit, "tritongen-many")
        send = partial(self._one_of_many, model, options, limit)
        try:
            while True:
                try:
                    inputs = next(requests)
                except StopIteration:
                    break
                except Exception:
                    while waiting:
                        yield waiting.popleft().result()
                    raise
                # In the caller's context, so that spans have their parent.
                waiting.append(pool.submit(partial(contextvars.copy_context().run, send, inputs, tensors)))
                while waiting and (len(waiting) >= limit or waiting[0].done()):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown()

    def _one_of_many(self, model: str, options: Options, limit: int, inputs: Mapping[str, object], tensors: Mapping[str, object]) -> Result:
        """A request while up to `limit` are under way; `tensors` go with each."""
        values = merged(named(inputs), tensors)
        return run(infer(self._core, model, values, options, window=self._core.window_beside(limit)), self._transports)

    def _in_sequence(self, model: str, step: Step) -> Result:
        return run(infer(self._core, model, step.inputs, step.options, sequence=step), self._transports)

    def _ask(self, call: calls.Call, deadline_s: float | None) -> Any:
        return self._run(self._core.ask(call, self._core.deadline(deadline_s)))

    def _run(self, flow: Flow[T]) -> T:
        return run(flow, self._transports)


def _transport(core: Core, index: int) -> Transport:
    endpoint = core.endpoints[index]
    if endpoint.protocol == "grpc":
        from tritongen.client.grpc_sync import GrpcTransport

        return GrpcTransport(endpoint, core.access, core.settings.compression)
    from tritongen.client.http_sync import HttpTransport

    return HttpTransport(endpoint, core.access, core.settings.compression)


class Model:
    """A model of a client's server, by name and version; what the server says of it is asked again when it changed."""

    def __init__(self, client: Client, name: str, version: str) -> None:
        self._client = client
        self.name = name
        self.version = version

    def meta(self, *, deadline_s: float | None = None) -> ModelMeta:
        """What the server says about the model now."""
        return self._client.meta(self.name, self.version, deadline_s=deadline_s)

    def infer(self, inputs: Mapping[str, object] | None = None, /, **options: Any) -> Result:
        """As `Client.infer`."""
        return self._client.infer(self.name, inputs, **bound_to(self.version, options))

    def infer_many(self, requests: Iterable[Mapping[str, object]], /, **options: Any) -> Iterator[Result]:
        """As `Client.infer_many`."""
        return self._client.infer_many(self.name, requests, **bound_to(self.version, options))

    def stream(self, inputs: Mapping[str, object] | None = None, /, **options: Any) -> Iterator[Result]:
        """As `Client.stream`."""
        return self._client.stream(self.name, inputs, **bound_to(self.version, options))

    def sequence(self, *, sequence_id: int | str | None = None) -> InferenceSequence:
        """As `Client.sequence`."""
        return self._client.sequence(self.name, sequence_id=sequence_id, version=self.version)


class InferenceSequence:
    """See `Client.sequence`."""

    def __init__(self, client: Client, model: str, version: str, sequence_id: int | str) -> None:
        self._client = client
        self._state = SequenceState(model, version, sequence_id)

    @property
    def sequence_id(self) -> int | str:
        """The correlation id."""
        return self._state.sequence_id

    def infer(self, inputs: Mapping[str, object] | None = None, /, *, end: bool = False, **options: Any) -> Result:
        """Sends the next request; `end` says that it is the last. Other arguments are those of `Client.infer`."""
        return self._send(self._state.next(inputs, options, end))

    def _send(self, step: Step) -> Result:
        with self._state.sending(step):
            return self._client._in_sequence(self._state.model, step)

    def __enter__(self) -> InferenceSequence:
        self._state.enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        step = self._state.leave(self._client._core.settings.deadline_s)
        if step is None:
            return
        try:
            self._send(step)
        except TritongenError:
            if error is None:
                raise
