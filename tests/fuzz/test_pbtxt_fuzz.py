"""Thousands of broken configs: the reader's verdict and values are those of protobuf, it never raises, and no text takes it long."""

import time

import config_texts
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tritongen.modelconfig.reading import apply_fixes, read_config

pytestmark = pytest.mark.fuzz


@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(config_texts.mutants(), config_texts.soups(), st.binary(max_size=200)))
def test_verdict_value_and_time(data):
    start = time.process_time()
    read = read_config(data, "config.pbtxt")
    assert time.process_time() - start < 2
    assert bool(read.diagnostics) is not read.ok
    if not config_texts.may_differ(data):
        theirs = config_texts.python_accepts(data)
        assert read.ok is (theirs is not None), read.diagnostics
        assert theirs is None or read.config.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(config_texts.mutants(), config_texts.soups()))
def test_fixes_give_what_was_understood(data):
    read = read_config(data, "config.pbtxt")
    mended = read_config(apply_fixes(data, read.fixes), "config.pbtxt")
    if read.fixes and len(read.fixes) == len(read.diagnostics):
        assert mended.ok, mended.diagnostics
        assert mended.config.SerializeToString(deterministic=True) == read.config.SerializeToString(deterministic=True)
