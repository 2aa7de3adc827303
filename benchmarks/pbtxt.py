"""How long reading a config.pbtxt takes, beside `google.protobuf.text_format` on the same text in the same run.

Prints medians with their spread: a good config of about 300 lines, the same with twenty mistakes, 500 small configs, and texts made to keep a reader busy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from google.protobuf import text_format

from tritongen.modelconfig import ModelConfig
from tritongen.modelconfig.reading import MAX_BYTES, read_config


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=21)
    repeats = parser.parse_args().repeats
    good = config(60)
    lines = good.count("\n")
    data = good.encode()
    ours = measure(f"read_config, {lines} lines", lambda: read_config(data, "config.pbtxt"), repeats)
    theirs = measure(f"text_format.Parse, {lines} lines", lambda: text_format.Parse(data, ModelConfig()), repeats)
    print(f"{'ratio of the medians':<44} {theirs / ours:8.2f}")
    broken = good.replace("dims", "dim", 10).replace("TYPE_FP32", "TYPE_FLOAT32", 10).encode()
    measure("read_config, the same with 20 mistakes", lambda: read_config(broken, "config.pbtxt"), repeats)
    small = config(2).encode()
    measure("read_config, 500 configs", lambda: [read_config(small, "config.pbtxt") for _ in range(500)], 3)
    for name, text in hostile().items():
        measure(f"read_config, {name}", lambda text=text: read_config(text, "config.pbtxt"), 1)


def config(tensors: int) -> str:
    """A config with this many inputs, in a style that people write."""
    head = 'name: "m"\nbackend: "onnxruntime"\nmax_batch_size: 8\n'
    inputs = "".join(f'  {{\n    name: "in{i}"\n    data_type: TYPE_FP32\n    dims: [ 3, 224, -1 ]\n  }},\n' for i in range(tensors))
    tail = "instance_group [ { kind: KIND_GPU count: 2 gpus: [ 0, 1 ] } ]\ndynamic_batching { preferred_batch_size: [ 4, 8 ] }\n"
    tail += 'parameters { key: "intra_op_thread_count" value: { string_value: "4" } }\n'
    return f"{head}input [\n{inputs[:-2]}\n]\n{tail}"


def hostile() -> dict[str, bytes]:
    """Texts of the greatest size that is read, each of another kind."""
    pieces = {
        "unknown fields": b"a: 1 ",
        "numbers": b"1,",
        "open braces": b"input {",
        "closing braces": b"}",
        "quotes": b'"\n',
        "map entries": b'parameters{key:"a" value{string_value:"b"}}',
        "digits": b"9",
        "comments": b"//\n",
        "dollars": b"$a ",
        "conflicts": b"<<<<<<< a\n",
        "backslashes": b"\\",
        "NUL": b"\0",
        "templates": b"{{",
        "block comments": b"/*",
        "words": b"a ",
        "blanks of another kind": "\u00a0".encode(),
        "strings": b'""',
        "strings of a name": b'"a" ',
    }
    texts = {name: piece * (MAX_BYTES // len(piece)) for name, piece in pieces.items()}
    texts["a long list"] = b"input { dims: [ 1" + b",1" * (MAX_BYTES // 2 - 20) + b" ] }"
    texts["a long string"] = b'name: "' + b"\\x41" * (MAX_BYTES // 4 - 3) + b'"'
    texts["an open bracket"] = b"input { dims: [" + b"1 " * (MAX_BYTES // 2 - 20)
    return texts


def measure(name: str, action: Callable[[], object], repeats: int) -> float:
    """Prints median and spread of an action, and returns the median in milliseconds."""
    values = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        values.append((time.perf_counter() - start) * 1000)
    median = statistics.median(values)
    print(f"{name:<44} {median:8.1f} ms   {min(values):8.1f} to {max(values):8.1f}   n={len(values)}")
    return median


if __name__ == "__main__":
    main()
