"""The parser inside Triton and our reader give the same verdict on the same texts.

Triton polls a repository of hundreds of folders, one text each, and says in its log which it could not parse. What it could parse it refuses for other reasons:
there is no model anywhere.
"""

from __future__ import annotations

import random

import pytest

from tests import config_texts
from tritongen.modelconfig.reading import read_config
from tritongen.server import start

pytestmark = pytest.mark.server

COUNT = 400
NOT_IN_24_10 = b"model_metrics"  # a field of later releases, which this one does not know


@pytest.fixture(scope="module")
def texts():
    """Good configs, each with one piece deleted, doubled, swapped, or another put in; seeded, and none of them the same as another."""
    rng = random.Random(7)
    found = {text.encode() for text in config_texts.GOOD}
    pieces = [*config_texts.SYMBOLS, *config_texts.VALUES, *config_texts.WORDS, '"\\ud800"', '"\\400"', "07", "-0", '"\\u005cn"']
    while len(found) < COUNT:
        text = rng.choice(config_texts.GOOD)
        begin = rng.randrange(len(text))
        end = min(len(text), begin + rng.choice((0, 1, 1, 4, 15)))
        middle = rng.choice(("", text[begin:end] * 2, rng.choice(pieces), text[begin:end][::-1]))
        data = (text[:begin] + middle + text[end:]).encode()
        if NOT_IN_24_10 not in data:
            found.add(data if rng.random() < 0.9 else data.replace(b"a", b"\xe9", 1))
    return sorted(found)


def test_triton_and_the_reader_agree(texts, tmp_path, options):
    for number, data in enumerate(texts):
        folder = tmp_path / f"m{number:03}"
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_bytes(data)
    with start(tmp_path, options(exit_on_error=False)) as server:
        reasons = server.reasons
    assert len(reasons) == len(texts)
    verdicts = {number: "failed to read text proto" not in reasons[f"m{number:03}"] for number in range(len(texts))}
    ours = {number: read_config(data, "config.pbtxt").ok for number, data in enumerate(texts)}
    assert [(texts[number], reasons[f"m{number:03}"]) for number in verdicts if verdicts[number] is not ours[number]] == []
    assert COUNT // 10 < sum(verdicts.values()) < COUNT - COUNT // 10
