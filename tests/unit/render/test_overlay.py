"""`config:` of a model: every field of ModelConfig is laid over, or refused with the key of the spec that derives it."""

from __future__ import annotations

import json

import pytest

from tests.unit.modelconfig.test_overlay_every_field import ORDINARY, leaf, name_of, overlay_of, value_of
from tests.unit.render.compiling import compiled
from tritongen.modelconfig import ModelConfig
from tritongen.spec.findings import fields_at

DERIVED = {"name", "platform", "backend", "max_batch_size", "default_model_filename", "version_policy"}
TOP = {field.name: next((path for path in ORDINARY if path[0] is field), (field,)) for field in ModelConfig.DESCRIPTOR.fields}


@pytest.mark.parametrize("name", TOP)
def test_a_field_is_laid_over_or_refused_with_the_key_that_derives_it(name):
    path = TOP[name]
    overlay = overlay_of(path, value_of(leaf(path)))
    outcome = compiled(f"config: {json.dumps(overlay)}")
    refused = [found for found in outcome.found if found.code in ("TG130", "TG132")]
    if name not in DERIVED:
        assert refused == []
        assert any(field.name == name for field, _ in outcome.config.ListFields())
        return
    (found,) = refused
    assert (found.code, str(found.location)) == ("TG130", f"config.{name}")
    assert found.hint.removeprefix("use the key ").partition(".")[0] in fields_at(("models", 0))


@pytest.mark.parametrize("path", [path for path in ORDINARY if path[0].name not in DERIVED], ids=name_of)
def test_a_mistake_is_shown_where_it_stands_in_the_overlay(path):
    outcome = compiled(f"config: {json.dumps(overlay_of(path, {'no': 'such thing'}))}")
    places = [str(found.location) for found in outcome.found if found.code == "TG132"]
    assert len(places) == 1
    assert places[0].startswith(f"config.{path[0].name}")
