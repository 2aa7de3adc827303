"""The catalogue of codes: complete, and each with words."""

import re
from pathlib import Path

import pytest

import tritongen
from tritongen.check.codes import codes, find_code
from tritongen.check.explain import explain, rules_page
from tritongen.errors import InputError
from tritongen.modelconfig.reading import read_config

PACKAGE = Path(tritongen.__file__).parent
CODE = re.compile(r"\bTG\d{3}\b")


def emitted() -> dict[str, Path]:
    """Every code in a string of the source, outside the catalogue's own tables."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if not path.is_relative_to(PACKAGE / "check/codes"):
            for line in path.read_text().splitlines():
                found.update(dict.fromkeys(re.findall(r"""["'](TG\d{3})["']""", line), path))
    return found


def test_every_code_of_the_source_is_in_the_catalogue():
    missing = {code: path for code, path in emitted().items() if code not in codes()}
    assert not missing


def test_no_code_of_the_catalogue_is_out_of_use():
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PACKAGE / "check/codes"))
    assert set(codes()) <= set(CODE.findall(source))


def test_no_code_and_no_name_means_two_things():
    names = [entry.name for entry in codes().values()]
    assert len(names) == len(set(names))
    tables = "".join(path.read_text() for path in (PACKAGE / "check/codes").glob("*.py"))
    declared = re.findall(r'Entry\(\s*"(TG\d{3})"|_entry\(\s*"(TG\d{3})"', tables)
    assert len(declared) == len(set(declared))


@pytest.mark.parametrize("code", codes())
def test_a_code_has_words_and_a_page(code):
    entry = codes()[code]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.name)
    assert entry.summary.endswith(".")
    assert entry.why
    assert entry.fix
    assert bool(entry.bad) == bool(entry.good)
    page = explain(code.lower())
    for words in (code, entry.name, entry.summary, entry.why, entry.fix):
        assert words in page
    assert explain(entry.name) == page


@pytest.mark.parametrize("code", [code for code, entry in codes().items() if "TG200" <= code < "TG220" and entry.bad])
def test_examples_of_the_reader_are_right(code):
    """The bad text raises the code, the good one parses."""
    assert code in {diagnostic.code for diagnostic in read_config(codes()[code].bad.encode(), "bad").diagnostics}
    assert read_config(codes()[code].good.encode(), "good").ok


def test_an_unknown_code_is_said_with_the_closest():
    with pytest.raises(InputError) as caught:
        explain("name-in-to-repositories")
    assert caught.value.diagnostics[0].hint == "did you mean name-in-two-repositories?"
    with pytest.raises(InputError, match="no code"):
        explain("TG2999")
    assert find_code("tg229") is codes()["TG229"]


@pytest.mark.parametrize("word", ["TG22", "tg22", " TG22 "])
def test_the_beginning_of_codes_lists_them(word):
    lines = explain(word).splitlines()
    assert [line.split()[0] for line in lines] == [code for code in codes() if code.startswith("TG22")]
    assert all(codes()[line.split()[0]].summary in line for line in lines)


def test_the_page_of_all_codes_is_fresh():
    page = Path(__file__).parents[3] / "docs/rules.md"
    assert page.read_text(encoding="utf-8") == rules_page(), "run `make docs`"
