"""Errors and results as processes hand them to each other: pickled and copied, nothing of them is lost."""

import copy
import pickle

import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as pb

from tritongen import errors
from tritongen.client.result import Result, Timings
from tritongen.diagnostics import Diagnostic, Location

FOUND = [Diagnostic("TG061", "wrong", Location("spec.yaml", 3, 5, "text"), hint="mend it", model="m"), Diagnostic("TG062", "more")]
MADE = {
    errors.MissingExtra: lambda kind: kind("serve", "serving", hint="h"),
    errors.ServerStartError: lambda kind: kind("no", reasons={"m": "why"}, log_tail="tail", hint="h"),
    errors.PartialFailure: lambda kind: kind("no", failures={(0, 2): errors.InvalidInput(FOUND, status="400"), (4, 6): errors.Overloaded("full")}, hint="h"),
    errors.ConnectionFailed: lambda kind: kind("no", status="UNAVAILABLE", hint="h", sent=False),
    errors.NotTriton: lambda kind: kind("no", sent=False),
    errors.DeadlineExceeded: lambda kind: kind("no", sent=False),
    errors.InvalidInput: lambda kind: kind(FOUND, status="400"),
}


def every_kind():
    kinds = [errors.TritongenError]
    for kind in kinds:
        kinds += [each for each in kind.__subclasses__() if each not in kinds]
    return kinds


def make(kind):
    general = (lambda kind: kind(FOUND)) if issubclass(kind, errors.InputError) else (lambda kind: kind("no", hint="h"))
    return MADE.get(kind, general)(kind)


def plain(value):
    """An error as what can be compared."""
    if isinstance(value, BaseException):
        return type(value), str(value), value.args, {name: plain(item) for name, item in vars(value).items()}
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


AGAIN = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_an_error_of_any_kind_stays_what_it_is(again):
    kinds = every_kind()
    assert len(kinds) >= 20
    for kind in kinds:
        error = make(kind)
        assert plain(again(error)) == plain(error)


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("raw", [pb.ModelInferResponse(model_name="m"), {"model_name": "m"}], ids=["grpc", "http"])
def test_a_result_stays_what_it_is_but_for_the_message_that_it_came_in(again, raw):
    view = np.frombuffer(np.ones(4, np.float32).tobytes(), np.float32).reshape(2, 2)
    result = Result({"y": view}, model="m", version="1", request_id="r", parameters={"a": 1}, timings=Timings(1, 2, 3, 4, 5), raw=raw)
    other = again(result)
    assert np.array_equal(other["y"], view)
    assert (other.model, other.version, other.request_id, other.parameters, other.timings) == ("m", "1", "r", {"a": 1}, result.timings)
    assert other.raw is None
