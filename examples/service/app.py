"""A service in front of Triton: one client for the life of the process, one endpoint.

TRITON_URL=grpc://localhost:8001 MODEL=text_recognizer uvicorn app:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from tritongen import AsyncClient, InferenceError, InvalidInput
from tritongen.errors import DeadlineExceeded, Overloaded, PartialFailure, TritongenError, Unavailable

DEADLINE_S = 2.0
STATUS: tuple[tuple[type[TritongenError], int], ...] = ((InvalidInput, 422), (Overloaded, 429), (Unavailable, 503), (DeadlineExceeded, 504))
"""The first that fits decides; a full queue is a way to be unavailable."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The client is made in the event loop that uses it, and closed with it."""
    async with AsyncClient(os.environ.get("TRITON_URL", "grpc://localhost:8001"), deadline_s=DEADLINE_S) as client:
        app.state.triton = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/predict")
async def predict(request: Request, inputs: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """Nested lists by input name in, nested lists by output name out."""
    result = await request.app.state.triton.infer(os.environ.get("MODEL", "text_recognizer"), inputs, idempotent=True)
    return {name: array.tolist() for name, array in result.items()}


@app.get("/ready")
async def ready(request: Request) -> dict[str, bool]:
    """For the platform's readiness probe."""
    if not await request.app.state.triton.ready(os.environ.get("MODEL", "text_recognizer"), deadline_s=1.0):
        raise HTTPException(503, "the model is not ready")
    return {"ready": True}


@app.exception_handler(InvalidInput)
async def invalid(request: Request, error: InvalidInput) -> JSONResponse:
    """What the caller sent does not fit the model: each fault in words."""
    return JSONResponse({"errors": [diagnostic.message for diagnostic in error.diagnostics]}, status_code=422)


def status_of(error: TritongenError) -> int:
    """What a failure is in HTTP. Of a request that was cut in parts, what all its failed parts are."""
    if isinstance(error, PartialFailure):
        kinds = {status_of(each) for each in error.failures.values()}
        return kinds.pop() if len(kinds) == 1 else 502
    return next((status for kind, status in STATUS if isinstance(error, kind)), 502)


@app.exception_handler(InferenceError)
async def failed(request: Request, error: InferenceError) -> JSONResponse:
    """What went wrong behind us, by kind: the caller may come back, or wait no longer, or tell somebody."""
    return JSONResponse({"errors": [str(error)]}, status_code=status_of(error))
