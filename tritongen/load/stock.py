"""What all users of a class share during a test of plain Locust: the models, and the requests to them. Knows neither servers nor protocols."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from gevent.lock import Semaphore
from locust.env import Environment

from tritongen.load.arrivals import draws
from tritongen.load.plan import ModelLoad

Values = Mapping[str, object]
"""The inputs of one request by name, as `Client.infer` takes them."""


class Request(NamedTuple):
    """One request: the model's name and version, and its inputs."""

    model: str
    version: str
    inputs: Values


@dataclass
class Stock:
    """What all users of a class share during a test: the models, and the requests in the order in which they are sent, without an end."""

    models: tuple[ModelLoad, ...]
    requests: Iterator[Request]


@dataclass
class Test:
    """What the users of one process share during a test, by class. `lock` lets one of them prepare it while the others wait."""

    lock: Semaphore = field(default_factory=Semaphore)
    stocks: dict[type, Stock] = field(default_factory=dict)
    refused: bool = False

    def over(self, **_: Any) -> None:
        """The next test prepares anew: models may have been replaced in between."""
        self.stocks.clear()
        self.refused = False


_tests: WeakKeyDictionary[Environment, Test] = WeakKeyDictionary()


def test_of(environment: Environment) -> Test:
    """The test that the users of this environment share; made with the first of them."""
    test = _tests.get(environment)
    if test is None:
        test = _tests[environment] = Test()
        stopped: Any = environment.events.test_stop  # Locust types none of its hooks
        stopped.add_listener(test.over)
    return test


def mixed(loads: Sequence[ModelLoad], pools: Sequence[Sequence[Values]], seed: int) -> Iterator[Request]:
    """Requests to the models by their parts, each model's own round and round, without an end."""
    pick = draws([load.part for load in loads], seed=seed)
    choices = [(load, itertools.cycle(pool)) for load, pool in zip(loads, pools, strict=True)]
    while True:
        load, payloads = choices[pick()]
        yield Request(load.model, load.version, next(payloads))
