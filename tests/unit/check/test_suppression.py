"""`# tritongen: ignore[...]` in a config.pbtxt."""

import pytest
from check_models import CONFIG, no_batching, rule

from tritongen.check.engine import CheckOptions, check
from tritongen.check.selection import Selection
from tritongen.check.targets import find_targets
from tritongen.rules import RULES

# A code that exists, so that a comment may name it; the check is the tests' own.
RULE = rule("TG229", no_batching, name="name-in-two-repositories")
BASE = CONFIG.format(name="m")


def run(folder, **options):
    found = check(find_targets([folder]), CheckOptions(rules=(RULE,), **options))
    return [(finding.diagnostic.code, finding.diagnostic.location.line) for finding in found]


@pytest.mark.parametrize(
    "line",
    [
        "max_batch_size: 8  # tritongen: ignore[TG229]",
        "# tritongen: ignore[TG229]\nmax_batch_size: 8",
        "max_batch_size: 8  # it's right: # tritongen: ignore[TG229]",
        "  #tritongen:ignore[ TG229 ]  because it is so\nmax_batch_size: 8",
        "# tritongen: ignore[name-in-two-repositories]\nmax_batch_size: 8",
        "# tritongen: ignore[TG22]\n# another comment\nmax_batch_size: 8",
        "# tritongen: ignore[TG229]\r\nmax_batch_size: 8\r",
        "max_batch_size: 8  # noqa tritongen: ignore[TG229] because x",
        "# see the wiki; tritongen: ignore[TG229]\nmax_batch_size: 8",
        "# tritongen ignore [TG229]\nmax_batch_size: 8",
    ],
)
def test_a_comment_on_the_line_or_above_suppresses(add_model, line):
    assert run(add_model(config=BASE.replace("max_batch_size: 8", line))) == []


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("max_batch_size: 8\n# tritongen: ignore[TG229]", [("TG229", 3), ("TG074", 4)]),
        ("# tritongen: ignore[TG229]\n\nmax_batch_size: 8", [("TG074", 3), ("TG229", 5)]),
        ("# tritongen: ignore\nmax_batch_size: 8", [("TG074", 3), ("TG229", 4)]),
        ("# tritongen: ignore[TG229, TG999x]\nmax_batch_size: 8", [("TG074", 3)]),
        ("# tritongen: ignore[TG208]\nmax_batch_size: 8", [("TG074", 3), ("TG229", 4)]),
        ("max_batch_size: 8\n# noqa tritongen: ignore[TG229]", [("TG229", 3), ("TG074", 4)]),
        ("max_batch_size: 8  # nobody needs tritongen: ignore here", [("TG229", 3)]),
    ],
)
def test_a_comment_that_suppresses_nothing_is_reported(add_model, line, left):
    assert run(add_model(config=BASE.replace("max_batch_size: 8", line))) == left


def test_a_comment_inside_a_string_is_none(add_model):
    text = BASE.replace("max_batch_size: 8", 'max_batch_size: 8 metric_tags { key: "a" value: "# tritongen: ignore[TG229]" }')
    assert run(add_model(config=text)) == [("TG229", 3)]


def test_a_comment_for_what_was_not_looked_for_is_not_called_unused(add_model):
    folder = add_model(config=f"# tritongen: ignore[TG229]\n{BASE.replace('8', '0', 1)}")
    assert run(folder) == [("TG074", 1)]
    assert run(folder, selection=Selection(None, frozenset({"TG229"}))) == []
    assert run(folder, selection=Selection(None, frozenset({"TG074"}))) == []


def test_a_syntax_mistake_can_be_suppressed_too(add_model):
    assert run(add_model(config=BASE.replace("max_batch_size: 8", "max_batch: 8  # tritongen: ignore[TG208]"))) == []


def test_a_useless_comment_is_reported_where_the_file_does_not_parse_too(add_model):
    text = BASE.replace("max_batch_size: 8", "max_batch: 8  # tritongen: ignore[TG208, TG210, TG229]")
    assert run(add_model(config=text)) == [("TG074", 3)]


def test_what_the_reader_did_not_get_to_is_not_judged(add_model):
    text = "# tritongen: ignore[TG210]\n" + "max_batch: 8\n" * 150
    assert "TG074" not in {code for code, _ in run(add_model(config=text))}


def test_a_comment_covers_a_rule_that_looks_across_models(add_model, tmp_path):
    add_model("m", "# tritongen: ignore[TG229]\n" + BASE, repository="a")
    add_model("m", repository="b")
    found = check(find_targets([tmp_path / "a", tmp_path / "b"]), CheckOptions(rules=tuple(one for one in RULES if one.code == "TG229")))
    assert [finding.diagnostic.location.path for finding in found] == [f"{tmp_path}/b/m/config.pbtxt"]
