"""Every field of ModelConfig, however deep, can be written in an overlay, and a mistake in it is named where it stands."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import FieldDescriptor

from tritongen.modelconfig import ModelConfig, merge_overlay, parse_pbtxt, print_pbtxt

BASE = 'name: "m"\nmax_batch_size: 4\ninput [{ name: "x" data_type: TYPE_FP32 dims: [3] }]\noutput [{ name: "y" data_type: TYPE_FP32 dims: [3] }]\n'
NAMES = {"input": "x", "output": "y"}


def is_map(field) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def fields(descriptor, path=()):
    """Paths of all scalar fields; a list's items have the place 0, a map's values a key."""
    for field in descriptor.fields:
        here = (*path, field)
        target = field.message_type.fields_by_name["value"] if is_map(field) else field
        if target.message_type is None:
            yield here
        else:
            yield from fields(target.message_type, here)
        if target.message_type is not None and not target.message_type.fields:
            yield here


def value_of(field):
    """A value of the field's type that is not its default."""
    if field.enum_type is not None:
        return field.enum_type.values[-1].name
    kinds = {
        FieldDescriptor.CPPTYPE_STRING: "text",
        FieldDescriptor.CPPTYPE_BOOL: True,
        FieldDescriptor.CPPTYPE_FLOAT: 0.5,
        FieldDescriptor.CPPTYPE_DOUBLE: 0.5,
    }
    return kinds.get(field.cpp_type, 7)


def key_of(field):
    return "text" if field.message_type.fields_by_name["key"].cpp_type == FieldDescriptor.CPPTYPE_STRING else 7


def overlay_of(path, value, depth=0):
    """The overlay that sets the field at the end of the path."""
    field, rest = path[0], path[1:]
    inner = overlay_of(rest, value, depth + 1) if rest else value
    if is_map(field):
        inner = {key_of(field): inner}
    elif field.is_repeated:
        if depth == 0 and field.name in NAMES:
            inner = {"name": NAMES[field.name]} | inner
        inner = [inner]
    return {field.name: inner}


def keys_of(path):
    """The keys and positions to the field."""
    keys = []
    for field in path:
        keys.append(field.name)
        if is_map(field):
            keys.append(key_of(field))
        elif field.is_repeated:
            keys.append(0)
    return tuple(keys)


def found_at(config, path):
    at = config
    for field in path:
        at = getattr(at, field.name)
        if is_map(field):
            at = at[key_of(field)]
        elif field.is_repeated:
            at = at[0]
    return at


PATHS = list(fields(ModelConfig.DESCRIPTOR))
LEAVES = [path for path in PATHS if path[-1].message_type is None or is_map(path[-1])]
ORDINARY = [path for path in LEAVES if not (path[0].name in NAMES and path[1].name == "name")]


def name_of(path):
    return ".".join(field.name for field in path)


def leaf(path):
    return path[-1].message_type.fields_by_name["value"] if is_map(path[-1]) else path[-1]


def test_the_walk_reaches_the_deepest_fields():
    names = {name_of(path) for path in PATHS}
    assert {field.name for field in ModelConfig.DESCRIPTOR.fields} == {path[0].name for path in PATHS}
    assert {"optimization.cuda.graph_spec.graph_lower_bound.input.dim", "sequence_batching.state.initial_state.data_file", "version_policy.all"} <= names


@pytest.mark.parametrize("path", ORDINARY, ids=name_of)
def test_it_is_set_and_survives_the_text_form(path):
    config = parse_pbtxt(BASE)
    assert merge_overlay(config, overlay_of(path, value_of(leaf(path)))) == []
    again = parse_pbtxt(print_pbtxt(config))
    found = found_at(again, path)
    expected = value_of(leaf(path))
    assert found == (leaf(path).enum_type.values_by_name[expected].number if leaf(path).enum_type is not None else expected)


@pytest.mark.parametrize("path", LEAVES, ids=name_of)
def test_a_value_of_another_kind_is_named_with_its_place(path):
    (problem,) = merge_overlay(parse_pbtxt(BASE), overlay_of(path, {"no": "such thing"}))
    keys = keys_of(path)
    if path[0].name in NAMES and path[1].name == "name":  # what is not among the model's tensors is the whole entry's fault
        keys = keys[:2]
    assert problem.path == keys
    assert problem.message


@pytest.mark.parametrize("path", [path for path in PATHS if len(path) > 1], ids=name_of)
def test_a_field_that_there_is_not_is_named_with_its_place(path):
    overlay = overlay_of(path[:-1], {"zzz_no_field": 1})
    problems = merge_overlay(parse_pbtxt(BASE), overlay)
    assert [problem.path[-1] for problem in problems] == ["zzz_no_field"]
    assert problems[0].path[:-1] == keys_of(path[:-1])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400, 1e39])
def test_a_number_that_the_field_cannot_hold_is_refused(value):
    overlay = {"sequence_batching": {"direct": {"minimum_slot_utilization": value}}}
    (problem,) = merge_overlay(parse_pbtxt(BASE), overlay)
    assert problem.path == ("sequence_batching", "direct", "minimum_slot_utilization")
    assert "expected a number" in problem.message


@pytest.mark.parametrize("name", [None, 1, ["x"], {"x": "x"}])
def test_a_tensor_whose_name_is_no_text_is_refused(name):
    (problem,) = merge_overlay(parse_pbtxt(BASE), {"input": [{"name": name, "optional": True}]})
    assert problem.path == ("input", 0)
    assert "the model has 'x'" in problem.hint
