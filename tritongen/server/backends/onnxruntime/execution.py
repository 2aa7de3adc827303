"""Running requests: one by one, or a batch as one call of the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ORT_ERRORS, ort_message
from .ragged import Assembly, SplitError, check_rows, rows_of
from .states import StateError, States
from .tensors import Array, Port, Run


class Executor:
    """Answers requests with one session.

    All that does not depend on a request is decided here once; the path of a single request through a model with plain tensors is kept as short as Python
    allows.

    Args:
        run: see `tensors.runner`.
        inputs, outputs: the config's ports, those of its states among them.
        assembly: how the tensors of several requests come together.
        states: what sequences remember.
        options: onnxruntime's run options, or None.
        triton: the stub's `triton_python_backend_utils`.
    """

    def __init__(
        self, run: Run, inputs: Mapping[str, Port], outputs: Mapping[str, Port], *, assembly: Assembly, states: States, options: Any, triton: Any
    ) -> None:
        self._run = run
        self._inputs = inputs
        self._outputs = outputs
        self._assembly = assembly
        self._states = states
        self._options = options
        self._tensor = triton.Tensor
        self._response = triton.InferenceResponse
        self._error = triton.TritonError
        self._plain_inputs = all(port.is_plain for port in inputs.values())
        self._plain_outputs = all(port.is_plain for port in outputs.values())
        self._joins = assembly.batching and not any(port.scalar for port in inputs.values())
        self._direct = assembly.is_plain and not states

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """One response for each request, in order."""
        if len(requests) > 1 and self._joins:
            return self._together(requests)
        return [self._alone(request) for request in requests]

    def _feed(self, request: Any) -> dict[str, Array]:
        """The request's arrays by input name."""
        if self._plain_inputs:
            feed = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        else:
            feed = {}
            for tensor in request.inputs():
                name = tensor.name()
                port = self._inputs.get(name)  # None: a control of the sequence batcher, which the config lists elsewhere
                feed[name] = tensor.as_numpy() if port is None else port.read(tensor)
        if self._states:
            self._states.fill(request, feed)
        return feed

    def _alone(self, request: Any) -> Any:
        """Run one request by itself."""
        if self._states and self._states.is_filler(request):
            return self._response([])
        try:
            return self._directly(request) if self._direct else self._answers([request])[0]
        except ORT_ERRORS as error:
            return self._failure(error)

    def _directly(self, request: Any) -> Any:
        names = list(request.requested_output_names())  # the stub gives a set; onnxruntime of some releases takes only a list
        feed = self._feed(request)
        arrays = self._run(names, feed, self._options)
        if self._assembly.batching and feed:
            rows = rows_of(feed)
            for name, array in zip(names, arrays, strict=True):
                check_rows(name, array, rows)
        return self._answer(names, arrays)

    def _together(self, requests: Sequence[Any]) -> list[Any]:
        """Run several requests as one batch.

        Where onnxruntime fails on the batch, each request runs alone, so that only the culprit is told so. Where an output cannot be split all
        fail: that is a fault of the model, and it must not show only in production.
        """
        fillers = [bool(self._states) and self._states.is_filler(request) for request in requests]
        real = [request for request, is_filler in zip(requests, fillers, strict=True) if not is_filler]
        try:
            answers = self._answers(real) if real else []
        except SplitError as error:
            answers = [self._failure(error) for _ in real]
        except ORT_ERRORS:
            answers = [self._alone(request) for request in real]
        left = iter(answers)
        return [self._response([]) if is_filler else next(left) for is_filler in fillers]

    def _answers(self, requests: Sequence[Any]) -> list[Any]:
        """Run the requests as one call of the network. Raises one of ORT_ERRORS."""
        feeds = [self._feed(request) for request in requests]
        wanted = [request.requested_output_names() for request in requests]
        names = list(set().union(*wanted, self._states.outputs))
        arrays = self._run(names, self._assembly.join(feeds), self._options)
        parts = self._assembly.split(names, arrays, feeds)
        responses = [self._answer(asked, [part[name] for name in asked]) for asked, part in zip(wanted, parts, strict=True)]
        if self._states:
            for request, part in zip(requests, parts, strict=True):
                self._states.keep(request, part)
        return responses

    def _answer(self, names: Sequence[str], arrays: Sequence[Array]) -> Any:
        make = self._tensor
        if self._plain_outputs:
            return self._response([make(name, array) for name, array in zip(names, arrays, strict=True)])
        return self._response([self._outputs[name].write(array, make) for name, array in zip(names, arrays, strict=True)])

    def _failure(self, error: Exception) -> Any:
        if isinstance(error, SplitError):
            return self._response([], self._error(str(error), self._error.UNSUPPORTED))
        if type(error) in (ValueError, UnicodeDecodeError, StateError):
            return self._response([], self._error(str(error), self._error.INVALID_ARG))
        return self._response([], self._error(ort_message(error), self._error.INTERNAL))
