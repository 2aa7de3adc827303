"""Running requests: one by one, or a batch as one call of the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .errors import ORT_ERRORS, ort_message
from .tensors import Array, Port, Run


class SplitError(ValueError):
    """An output has other rows than the batch, so that no request can be given its own."""


class Executor:
    """Answers requests with one session.

    All that does not depend on a request is decided here once; the path of a single request through a model with plain tensors is kept as short as Python
    allows.

    Args:
        run: see `tensors.runner`.
        inputs, outputs: the config's ports.
        batching: whether the first dimension is the batch (`max_batch_size` above 0).
        options: onnxruntime's run options, or None.
        triton: the stub's `triton_python_backend_utils`.
    """

    def __init__(self, run: Run, inputs: Mapping[str, Port], outputs: Mapping[str, Port], *, batching: bool, options: Any, triton: Any) -> None:
        self._run = run
        self._inputs = inputs
        self._outputs = outputs
        self._batching = batching
        self._options = options
        self._tensor = triton.Tensor
        self._response = triton.InferenceResponse
        self._error = triton.TritonError
        self._plain_inputs = all(port.is_plain for port in inputs.values())
        self._plain_outputs = all(port.is_plain for port in outputs.values())
        self._joins = batching and not any(port.scalar for port in inputs.values())

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """One response for each request, in order."""
        if len(requests) > 1 and self._joins:
            return self._together(requests)
        return [self._alone(request) for request in requests]

    def _feed(self, request: Any) -> dict[str, Array]:
        """The request's arrays by input name."""
        if self._plain_inputs:
            return {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        feed = {}
        for tensor in request.inputs():
            name = tensor.name()
            port = self._inputs.get(name)  # None: a control of the sequence batcher, which the config lists elsewhere
            feed[name] = tensor.as_numpy() if port is None else port.read(tensor)
        return feed

    def _alone(self, request: Any) -> Any:
        """Run one request by itself."""
        names = list(request.requested_output_names())  # the stub gives a set; onnxruntime of some releases takes only a list
        try:
            feed = self._feed(request)
            arrays = self._run(names, feed, self._options)
            if self._batching and feed:
                self._check_rows(names, arrays, _rows(feed))
            return self._answer(names, arrays)
        except ORT_ERRORS as error:
            return self._failure(error)

    def _together(self, requests: Sequence[Any]) -> list[Any]:
        """Run several requests as one batch.

        Where onnxruntime fails on the batch, each request runs alone, so that only the culprit is told so. Where an output cannot be split all
        fail: that is a fault of the model, and it must not show only in production.
        """
        try:
            feeds = [self._feed(request) for request in requests]
            wanted = [request.requested_output_names() for request in requests]
            names = list(set().union(*wanted))
            joined = {name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]}
            arrays = self._run(names, joined, self._options)
            self._check_rows(names, arrays, _rows(joined))
            responses = []
            start = 0
            for feed, asked in zip(feeds, wanted, strict=True):
                end = start + _rows(feed)
                own = {name: array[start:end] for name, array in zip(names, arrays, strict=True)}
                responses.append(self._answer(asked, [own[name] for name in asked]))
                start = end
        except SplitError as error:
            return [self._failure(error) for _ in requests]
        except ORT_ERRORS:
            return [self._alone(request) for request in requests]
        return responses

    @staticmethod
    def _check_rows(names: Sequence[str], arrays: Sequence[Array], rows: int) -> None:
        """Refuse outputs that have not one row for each of the batch; a scalar is one row. Raises SplitError.

        Too few are refused in the words of NVIDIA's backend. Too many it cuts off behind the batch and says nothing, so that requests get rows of others;
        here that is an error, for a single request too: it must not first show when two come together.
        """
        for name, array in zip(names, arrays, strict=True):
            found = array.shape[0] if array.ndim else 1
            if found < rows:
                raise SplitError(
                    f"failed to split the output tensor '{name}' in responses: expected batch size of at least {rows} in model output, got {found}"
                )
            if found > rows:
                raise SplitError(
                    f"failed to split the output tensor '{name}' in responses: expected {rows} rows in model output, one for each of the batch, got {found}; "
                    "the model's axis 0 is not a batch axis, and NVIDIA's backend would hand out wrong rows without a word; serve the model without batching "
                    "(max_batch_size: 0 in config.pbtxt, `batching: none` in a spec)"
                )

    def _answer(self, names: Sequence[str], arrays: Sequence[Array]) -> Any:
        make = self._tensor
        if self._plain_outputs:
            return self._response([make(name, array) for name, array in zip(names, arrays, strict=True)])
        return self._response([self._outputs[name].write(array, make) for name, array in zip(names, arrays, strict=True)])

    def _failure(self, error: Exception) -> Any:
        if isinstance(error, SplitError):
            return self._response([], self._error(str(error), self._error.UNSUPPORTED))
        if type(error) in (ValueError, UnicodeDecodeError):
            return self._response([], self._error(str(error), self._error.INVALID_ARG))
        return self._response([], self._error(ort_message(error), self._error.INTERNAL))


def _rows(feed: Mapping[str, Array]) -> int:
    """Batch size of a feed: the first dimension of any input (Triton has checked that all agree)."""
    for array in feed.values():
        return array.shape[0] if array.ndim else 1
    return 0
