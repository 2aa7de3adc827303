"""Model repositories that nobody means well with: each is a function that fills a folder. Used by the tests of `check` and by the fuzzer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from check_models import CONFIG

from tritongen.modelconfig.reading import MAX_BYTES
from tritongen.rules.context import TEXT_BYTES

GOOD = CONFIG.format(name="m")
ALL_THAT_IS_READ = MAX_BYTES - 1_000
ODD_NAMES = (
    b"new\nline",
    b"\x1b[2Jescape",
    b"no\xff\xfeutf8",
    b"a" * 255,
    b"%41",
    b" ",
    b"-rf",
    b"..x",
    "\u202eabc".encode(),
    b"'\"`$(x)",
    b"::error::x",
    b"\x7f",
    b"#",
)


def _model(root: Path, text: str | bytes = GOOD, name: str = "m") -> Path:
    folder = root / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def _size(root: Path, size: int) -> None:
    folder = _model(root)
    with (folder / "config.pbtxt").open("r+b") as file:
        file.truncate(size)


def hundred_megabytes(root: Path) -> None:
    """A config of 100 MB, most of it NUL."""
    _size(root, 100 << 20)


def most_that_is_read(root: Path) -> None:
    """A config as large as the reader takes, of a few fields again and again."""
    _model(root, ('input { name: "x" data_type: TYPE_FP32 dims: [ 8 ] }\n' * 40_000)[:ALL_THAT_IS_READ])


def comments(root: Path) -> None:
    """Nothing but comments that look like suppressions."""
    _model(root, "# tritongen: ignore[TG208]\n" * (ALL_THAT_IS_READ // 28) + GOOD)


def quotes(root: Path) -> None:
    """A long line of quotes and hashes around the mark of a suppression."""
    _model(root, "\"'#" * 100_000 + "tritongen: ignore[TG2]")


def open_quotes(root: Path) -> None:
    """Lines that could make the search for comments slow."""
    _model(root, (('"' + "\\a" * 4_000 + " # tritongen: ignore[x]\n") * 100)[:ALL_THAT_IS_READ])


def deep(root: Path) -> None:
    """Brackets in brackets, as deep as a file can hold."""
    _model(root, "dynamic_batching {" * (ALL_THAT_IS_READ // 18))


def huge_numbers(root: Path) -> None:
    """Numbers of many digits, and the largest that fit."""
    big = 2**63 - 1
    dims = ", ".join([str(big)] * 1000)
    _model(root, f'name: "m" max_batch_size: 2147483647 input {{ name: "x" data_type: TYPE_FP32 dims: [ {dims} ] reshape {{ shape: [ {dims} ] }} }}')
    _model(root, f"max_batch_size: {'9' * 100_000}", "digits")


def maps(root: Path) -> None:
    """Seven thousand parameters."""
    _model(root, GOOD + "".join(f'parameters {{ key: "k{index}" value {{ string_value: "{index}" }} }}\n' for index in range(7_000)))


def tensors(root: Path) -> None:
    """Many inputs, groups, warmups and steps of one ensemble."""
    lines = [f'input {{ name: "i{index}" data_type: TYPE_FP32 dims: [ 1 ] }}' for index in range(3_000)]
    lines += ["instance_group { count: 2147483647 kind: KIND_GPU gpus: [ 0, 0, -1 ] }"] * 1_000
    _model(root, "\n".join(lines))
    steps = "".join(
        f'step {{ model_name: "e" model_version: -1 input_map {{ key: "a" value: "t{index}" }} output_map {{ key: "b" value: "t{index + 1}" }} }}\n'
        for index in range(3_000)
    )
    _model(root, f'platform: "ensemble"\nensemble_scheduling {{\n{steps}}}\n', "e")


def pipes(root: Path) -> None:
    """Pipes where files are expected; reading one would wait forever."""
    folder = _model(root)
    os.mkfifo(folder / "1/model.onnx")
    other = _model(root, name="n")
    (other / "config.pbtxt").unlink()
    os.mkfifo(other / "config.pbtxt")
    os.mkfifo(other / "2")
    os.mkfifo(root / "stray")


def links(root: Path) -> None:
    """Loops of links, links to nowhere, to the whole disk, and to endless devices."""
    folder = _model(root)
    (folder / "1/loop").symlink_to("..")
    (folder / "1/self").symlink_to("self")
    (folder / "2").symlink_to("/")
    (folder / "1/model.onnx").symlink_to("/dev/zero")
    (root / "root").symlink_to("/")
    (root / "here").symlink_to(".")
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    other = _model(root, name="n")
    (other / "config.pbtxt").unlink()
    (other / "config.pbtxt").symlink_to("/dev/zero")


def forbidden(root: Path) -> None:
    """What may not be read or entered (by anybody but root)."""
    folder = _model(root)
    (folder / "config.pbtxt").chmod(0)
    (_model(root, name="n") / "1").chmod(0)


def odd_names(root: Path) -> None:
    """Names with control characters, bytes that are no UTF-8, and what a shell or GitHub would obey."""
    for raw in ODD_NAMES:
        name = os.fsdecode(raw)
        folder = _model(root, name=name)
        (folder / name).mkdir()
        (folder / "1" / name).write_bytes(b"x")
        (folder / "1/model.onnx").write_bytes(raw)


def many_files(root: Path) -> None:
    """More files in a version than are looked at."""
    folder = _model(root)
    (folder / "1/file").touch()
    for index in range(51_000):
        os.link(folder / "1/file", folder / f"1/{index}")  # a hard link is the cheapest file


def many_versions(root: Path) -> None:
    """Versions by the thousand, with every kind of number."""
    folder = _model(root)
    for index in range(2_000):
        (folder / str(10**18 + index)).mkdir()
    for name in ("0", "01", "-1", "1e3", "9" * 200, "\u0661", "1 ", "+1"):
        (folder / name).mkdir()


def deep_folders(root: Path) -> None:
    """Folders in folders, as deep as a path may be."""
    here = _model(root) / "1"
    for _ in range(200):
        here = here / "a"
        here.mkdir()


def no_models_files(root: Path) -> None:
    """Things that are no ONNX models under that name."""
    contents = {
        "empty": b"",
        "html": b"<html>",
        "zeros": b"\0" * 100_000,
        "ones": b"\xff" * 100_000,
        "nested": b"\x3a\xff\xff\xff\xff\x07" * 10_000,
        "groups": b"\x0b" * 100_000,
        "text": GOOD.encode(),
    }
    for name, content in contents.items():
        (_model(root, name=name) / "1/model.onnx").write_bytes(content)


def python_models(root: Path) -> None:
    """Files that would keep a parser busy, or overflow its stack."""
    most = TEXT_BYTES - 100
    contents = {
        "attributes": b"x" + b".a" * (most // 2),
        "sums": b"1" + b"+1" * (most // 2),
        "minuses": b"-" * most + b"1",
        "brackets": b"(" * most,
        "calls": b"f" + b"()" * (most // 2),
        "choices": b"if a:\n a\n" + b"elif a:\n a\n" * (most // 11),
        "statements": b"a;" * (most // 2),
        "lines": b"a\n" * (most // 2),
        "lists": b"[" + b"1," * (most // 2) + b"]",
        "digits": b"9" * most,
        "unclosed": b"({[" * 60 + b"1",
        "backslashes": b"\\\n" * (most // 2),
        "null": b"\0" * most,
        "coding": b"# coding: rot13\nkynff",
        "unknown_coding": b"# coding: \xff\n",
        "default": b"class TritonPythonModel:\n def execute(self, a, b, c=" + b"[" * 90 + b"]" * 90 + b"): pass\n",
        "too_large": b"a\n" * TEXT_BYTES,
    }
    for name, content in contents.items():
        folder = _model(root, 'backend: "python"\n', name)
        (folder / "1/model.py").write_bytes(content)
    for name, content in {"json_deep": b"[" * most, "json_digits": b"9" * most, "json_surrogate": b'{"model": "\\ud800"}'}.items():
        folder = _model(root, 'backend: "vllm"\n', name)
        (folder / "1/model.json").write_bytes(content)


HOSTILE: tuple[Callable[[Path], None], ...] = (
    hundred_megabytes,
    most_that_is_read,
    comments,
    quotes,
    open_quotes,
    deep,
    huge_numbers,
    maps,
    tensors,
    pipes,
    links,
    forbidden,
    odd_names,
    many_files,
    many_versions,
    deep_folders,
    no_models_files,
    python_models,
)
