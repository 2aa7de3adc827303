"""`locate` gives the place of every field, however the text is laid out."""

import config_texts
import pytest

from tritongen.modelconfig.reading import read_config


def line_and_column(text, offset):
    before = text[:offset].replace("\r\n", " \n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize("marked", config_texts.STYLES.values(), ids=config_texts.STYLES)
def test_every_field_is_found_where_it_is(marked):
    text = config_texts.plain(marked)
    read = read_config(text.encode(), "m/config.pbtxt")
    assert read.ok, read.diagnostics
    marks = dict(config_texts.marks(marked))
    assert len(marks) >= 20
    for path, offset in marks.items():
        location = read.locate(path)
        assert (location.line, location.column) == line_and_column(text, offset), path
        assert location.path == "m/config.pbtxt"
        assert location.text == text.splitlines()[location.line - 1]


def every_path(message, path=()):
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key, item in value.items():
                yield (*path, field.name, key)
                if hasattr(item, "ListFields"):
                    yield from every_path(item, (*path, field.name, key))
        elif field.is_repeated:
            for index, item in enumerate(value):
                yield (*path, field.name, index)
                if field.message_type is not None:
                    yield from every_path(item, (*path, field.name, index))
        else:
            yield (*path, field.name)
            if field.message_type is not None:
                yield from every_path(value, (*path, field.name))


@pytest.mark.parametrize("marked", config_texts.STYLES.values(), ids=config_texts.STYLES)
def test_the_test_above_leaves_no_field_out(marked):
    marks = dict(config_texts.marks(marked))
    read = read_config(config_texts.plain(marked).encode(), "config.pbtxt")
    unmarked = [path for path in every_path(read.config) if path not in marks]
    # An item of a repeated message that is written as `name { ... }` is where its name is, which the mark of the field itself may stand for.
    assert [path for path in unmarked if not isinstance(path[-1], int)] in ([], [("ensemble_scheduling", "step", 0, "output_map", "y")])


def test_what_is_missing_is_where_its_nearest_neighbour_is():
    read = read_config(b'name: "m"\ninput [\n  { name: "x" }\n]\n', "config.pbtxt")
    places = {
        ("input", 0, "dims", 3): (3, 3),
        ("input", 7): (2, 1),
        ("input", 0, "reshape", "shape", 0): (3, 3),
        ("dynamic_batching", "preferred_batch_size", 0): (1, 1),
        ("parameters", "threads"): (1, 1),
        (): (1, 1),
    }
    assert {path: (read.locate(path).line, read.locate(path).column) for path in places} == places


def test_a_corrected_field_is_found_under_its_right_name():
    read = read_config(b'inputs { name: "x"\n dim: [ 1, 2 ] }\nparameters {\n threads: "4" }', "config.pbtxt")
    places = {("input", 0, "dims", 1): (2, 12), ("parameters", "threads"): (4, 2)}
    assert {path: (read.locate(path).line, read.locate(path).column) for path in places} == places


def test_columns_count_characters_and_lines_count_as_editors_do():
    read = read_config('# caf\u00e9\r\nname: "\u00e9\u00e8" backend: "b"\rplatform: "p"'.encode(), "config.pbtxt")
    assert (read.locate(("backend",)).line, read.locate(("backend",)).column) == (2, 21)
    assert (read.locate(("platform",)).line, read.locate(("platform",)).column) == (3, 11)
