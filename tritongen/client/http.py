"""Requests over HTTP with binary tensors, through tritonclient."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import gevent  # type: ignore[import-untyped]
import rapidjson
import tritonclient.http as triton
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from tritonclient.utils import InferenceServerException

from tritongen.client.core import Endpoint, stranger
from tritongen.dtypes import Dtype
from tritongen.errors import InferenceError
from tritongen.samples import Array

_PROBE_S = 2.0


class HttpTransport:
    """One connection. Not safe to use from several threads: the library underneath is built on greenlets."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        """`timeout_s` bounds every single wait for the network, in seconds; the calls have limits of their own."""
        self._limit_s = timeout_s
        self._where = f"{'https' if endpoint.tls else 'http'}://{endpoint.authority}"
        self._client = triton.InferenceServerClient(endpoint.authority, ssl=endpoint.tls, connection_timeout=timeout_s, network_timeout=timeout_s)

    def metadata(self, model: str, version: str, timeout_s: float) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors(timeout_s):
            return self._object(self._client.get_model_metadata(model, version), "name", "inputs", "outputs")

    def config(self, model: str, version: str, timeout_s: float) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors(timeout_s):
            return self._object(self._client.get_model_config(model, version), "name")

    def index(self, timeout_s: float) -> Sequence[Mapping[str, Any]]:
        """See `Transport`."""
        with self._errors(timeout_s):
            answer = self._client.get_model_repository_index()
            if not isinstance(answer, list):
                raise stranger(self._where, "HTTP", "its index of models is no list")
            return [self._object(item, "name") for item in answer]

    def infer(self, model: str, version: str, inputs: Mapping[str, tuple[Array, Dtype]], timeout_s: float) -> dict[str, Array]:
        """See `Transport`."""
        with self._errors(timeout_s):
            request = []
            for name, (array, dtype) in inputs.items():
                request.append(triton.InferInput(name, list(array.shape), dtype.wire))
                request[-1].set_data_from_numpy(array, binary_data=True)
            result = self._client.infer(model, request, model_version=version)
            outputs = self._object(result.get_response(), "outputs")["outputs"]
            return {output["name"]: result.as_numpy(output["name"]) for output in outputs}

    def ready(self, timeout_s: float) -> bool:
        """See `Transport`."""
        try:
            with self._errors(timeout_s):
                return bool(self._client.is_server_ready())
        except InferenceError:
            return False

    def close(self) -> None:
        """See `Transport`."""
        self._client.close()

    def _object(self, answer: object, *keys: str) -> Mapping[str, Any]:
        """An answer that has these keys, as Triton's have."""
        if not isinstance(answer, Mapping) or any(key not in answer for key in keys):
            raise stranger(self._where, "HTTP", f"its answer has no {' and '.join(keys)}")
        return cast(Mapping[str, Any], answer)

    @contextlib.contextmanager
    def _errors(self, timeout_s: float) -> Iterator[None]:
        """The one place where errors of tritonclient, geventhttpclient, rapidjson and sockets become ours, and where a call's time ends.

        The library's own limit is for one read: a server that sends a byte now and then would never reach it.
        """
        try:
            with gevent.Timeout(timeout_s, TimeoutError()):
                yield
        except InferenceServerException as error:
            raise self._refused(error, min(timeout_s, _PROBE_S)) from error
        except HTTPConnectionClosed as error:
            hint = "the server crashed, or this is the port of another service: Triton's usual HTTP port is 8000 (gRPC 8001)"
            raise InferenceError(f"{self._where}: the connection was closed without an answer", status="UNAVAILABLE", hint=hint) from error
        except HTTPParseError as error:
            raise stranger(self._where, "HTTP", "its answer is no HTTP") from error
        except (rapidjson.JSONDecodeError, UnicodeDecodeError) as error:
            raise stranger(self._where, "HTTP", "its answer is no JSON") from error
        except TimeoutError as error:
            hint = "wait longer (--timeout), or see whether this is Triton's HTTP port, usually 8000"
            raise InferenceError(f"{self._where}: no answer within {self._limit_s:g} s", status="TIMEOUT", hint=hint) from error
        except ssl.SSLError as error:
            hint = "does the server speak TLS there, with a certificate that this machine trusts? http:// is without TLS"
            raise InferenceError(f"{self._where}: {error.strerror or error}", status="UNAVAILABLE", hint=hint) from error
        except OSError as error:
            hint = f"is a server listening at {self._where}? 8000 is Triton's usual HTTP port"
            raise InferenceError(f"{self._where}: {error.strerror or error}", status="UNAVAILABLE", hint=hint) from error

    def _refused(self, error: InferenceServerException, timeout_s: float) -> InferenceError:
        """An answer with an error status. Whether it is Triton's own word shows in whether the server describes itself as Triton does."""
        status, body = error.status() or "", error.debug_details()
        try:
            with gevent.Timeout(timeout_s, TimeoutError()):
                known = isinstance(self._client.get_server_metadata(), Mapping)
        except OSError:
            known = True
        except (InferenceServerException, HTTPParseError, rapidjson.JSONDecodeError, UnicodeDecodeError):
            known = False
        if not known:
            return stranger(self._where, "HTTP", f"it answers with status {status}", status=status)
        # tritonclient keeps the body of an error that is not in Triton's form, and only then: a proxy's page.
        return InferenceError(f"{self._where}: {error.message() if body is None else f'status {status}: {body!s:.300}'}", status=status)
