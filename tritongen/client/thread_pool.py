"""Threads that do what they are given, and that nobody has to wait for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ThreadPool(Generic[T]):
    """At most so many threads for a series of jobs. Those of `concurrent.futures` would keep the process alive until their last request has its answer."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[tuple[Future[T], Callable[[], T]] | None] = queue.SimpleQueue()
        self._size = 0

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Give a job to the next thread that is free."""
        future: Future[T] = Future()
        self._jobs.put((future, job))
        if self._size < self._most:
            self._size += 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def shutdown(self) -> None:
        """The threads end once they have done what they are at; jobs that nobody has begun are cancelled."""
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is not None:
                job[0].cancel()
        for _ in range(self._size):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _do(*job)
            del job  # its result is the caller's, and may be large


def _do(future: Future[T], job: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job())
    except BaseException as error:  # noqa: BLE001 - whoever asks for the result decides
        future.set_exception(error)
