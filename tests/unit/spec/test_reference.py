"""The page of all keys: complete, true and fresh."""

from pathlib import Path

import pytest

from tritongen.report.reference import spec_page
from tritongen.sources.flow import yaml_flow
from tritongen.spec.models import Spec
from tritongen.spec.sections import MODELS, sections

PAGE = Path(__file__).parents[3] / "docs/spec.md"
SECTIONS = {section.anchor: section for section in sections()}
KEYS = [(anchor, key) for anchor, section in SECTIONS.items() for key in section.keys]


@pytest.mark.parametrize(("anchor", "key"), KEYS)
def test_a_key_says_what_it_sets_and_why_one_would_set_it(anchor, key):
    """Declare it with `setting(text, sets=..., why=...)`."""
    schema = SECTIONS[anchor].keys[key]
    assert schema.get("x-triton"), "sets= is missing"
    assert schema.get("x-why"), "why= is missing"
    assert not schema["x-why"].endswith(".")
    assert schema["description"].endswith(f". Sets {schema['x-triton']}.")


@pytest.mark.parametrize("anchor", SECTIONS)
def test_the_example_of_a_section_is_part_of_a_spec(anchor):
    """Declare it as `class Section(Strict, json_schema_extra={"examples": [{...}]})`."""
    section = SECTIONS[anchor]
    example = section.example()
    assert example is not None, "it has no example"
    whole = {"version": 1, "models": [{"name": "x"} if "sources" in example else {"name": "x", "source": "m.onnx"}]}
    if section.path[:1] == MODELS:
        whole["models"][0] |= example
    else:
        whole |= example
    assert Spec.model_validate(whole)
    assert "\n".join(f"{key}: {yaml_flow(value)}" for key, value in example.items()) in PAGE.read_text()


@pytest.mark.parametrize(("anchor", "key"), KEYS)
def test_the_page_has_every_key(anchor, key):
    part = PAGE.read_text().split(f'<a id="{anchor}"></a>')[1].split("\n## ")[0]
    assert f"`{key}`" in part


def test_every_link_leads_somewhere():
    text = PAGE.read_text()
    targets = {part.split(")")[0] for part in text.split("](#")[1:]}
    assert targets
    assert {target for target in targets if f'<a id="{target}"></a>' not in text} == set()


def test_the_kinds_of_a_lists_items_are_not_those_of_the_key():
    """`load_models: "*"` is refused; the list of it is what there is."""
    assert '| `load_models` | list of (texts or `"*"`) |' in spec_page()


def test_the_page_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == spec_page(), "run `make docs`"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"max": 16, "delay": "2ms"}, "{max: 16, delay: 2ms}"),
        ([{"kind": "gpu"}], "[{kind: gpu}]"),
        (["25.08", "off", "a b", "", True, None, 0.5], '["25.08", "off", "a b", "", true, null, 0.5]'),
        ({"1": "4GiB"}, '{"1": 4GiB}'),
    ],
)
def test_yaml_on_one_line(value, text):
    assert yaml_flow(value) == text
