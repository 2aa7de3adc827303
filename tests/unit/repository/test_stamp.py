"""The stamp, and names that try to be more than a part of a line in it."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritongen.repository import KeptFile, TextFile, read_stamp
from tritongen.repository.stamp import stamp_text

BODY = 'name: "m"\nmax_batch_size: 0\n'
NAMES = st.text(st.one_of(st.characters(exclude_characters="/\0"), st.sampled_from(list('\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ud800\\ #"'))), min_size=1)
PATHS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=3).map(lambda parts: PurePosixPath(*parts))


FILES = st.dictionaries(PATHS, st.binary(max_size=3), max_size=3)


@given(FILES, st.lists(PATHS, max_size=2, unique=True), FILES)
def test_any_names_are_read_as_they_were_written_and_write_no_lines(files, kept, artifacts):
    texts = {path: TextFile(content) for path, content in files.items()} | {path: KeptFile() for path in kept}
    text = stamp_text("# header\n", BODY, texts, {path: TextFile(content) for path, content in artifacts.items()}, {})
    lines = text.encode().decode().splitlines()
    assert lines[len(texts) + len(artifacts) + 2 :] == BODY.splitlines(), "each name is on the line of its own"
    assert all(line.startswith("# ") for line in lines[: len(texts) + len(artifacts) + 2])
    stamp = read_stamp(text)
    assert not stamp.edited
    assert set(stamp.files) == {path for path in texts if path not in kept}
    assert set(stamp.kept) == set(kept)
    assert set(stamp.artifacts) == set(artifacts)
    assert stamp.model == "m"


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_a_line_feed_ends_a_line_of_the_header(separator):
    text = stamp_text(f"# made from a{separator}b.yaml\n", f"# remark{separator}more\n{BODY}", {}, {}, {})
    assert not read_stamp(text).edited
    assert read_stamp(text.replace("max_batch_size: 0", "max_batch_size: 1")).edited
