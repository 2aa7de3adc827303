"""What `tritongen load` does with its files: what is wrong with them is said before anything is sent."""

import json
import os

import load_results
import pytest

from tritongen.cli.load_output import LoadOutput
from tritongen.errors import InputError
from tritongen.load.findmax import Found, Probe

NOBODY = ["load", "m", "-u", "grpc://127.0.0.1:1"]


@pytest.fixture
def earlier(tmp_path):
    path = tmp_path / "earlier.json"
    path.write_text(load_results.make(seed=2).to_json())
    return path


@pytest.mark.parametrize("option", ["-o", "--html"])
@pytest.mark.parametrize(("path", "words"), [("", "it is a folder"), ("nowhere/out", "there is no folder"), ("earlier.json/out", "there is no folder")])
def test_a_file_that_cannot_be_written_is_said_before_the_run(tritongen, tmp_path, earlier, option, path, words):
    done = tritongen(*NOBODY, option, tmp_path / path)
    assert (done.code, "TG421" in done.err, words in done.err) == (2, True, True), done.err


def test_everything_that_is_wrong_with_the_files_is_said_at_once(tritongen, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    done = tritongen(*NOBODY, "-o", tmp_path, "--html", tmp_path / "nowhere/a.html", "--compare", tmp_path / "other.json")
    assert done.code == 2
    assert (done.err.count("TG421"), done.err.count("TG422") >= 1) == (2, True)
    assert "Traceback" not in done.err


def test_one_file_cannot_hold_both(tritongen, tmp_path):
    done = tritongen(*NOBODY, "-o", tmp_path / "a", "--html", tmp_path / "a")
    assert (done.code, "files of their own" in done.err) == (2, True)


@pytest.mark.parametrize("path", ["missing.json", ""])
def test_an_earlier_result_that_is_not_there_is_said_before_the_run(tritongen, tmp_path, path):
    done = tritongen(*NOBODY, "--compare", tmp_path / path)
    assert (done.code, "TG001" in done.err) == (2, True)


def test_a_pipe_is_not_waited_for(tritongen, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert tritongen(*NOBODY, "--compare", tmp_path / "pipe").code == 2


def test_all_is_written_and_the_earlier_result_may_be_replaced(capsys, tmp_path, earlier):
    outputs = LoadOutput.prepare("text", earlier, tmp_path / "report.html", earlier)
    result = load_results.make()
    outputs.result(result)
    assert json.loads(earlier.read_text()) == json.loads(result.to_json())
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    printed = capsys.readouterr().out
    assert "SLO kept" in printed
    assert "seed: 2, now 1" in printed


def test_json_that_is_printed_stays_json(capsys, tmp_path, earlier):
    LoadOutput.prepare("json", None, None, earlier).result(load_results.make())
    printed = capsys.readouterr()
    assert json.loads(printed.out)["schema"] == 1
    assert "seed: 2, now 1" in printed.err


def test_what_cannot_be_written_after_all_is_printed_and_the_rest_is_written(capsys, tmp_path):
    outputs = LoadOutput.prepare("text", tmp_path / "out.json", tmp_path / "out.html", None)
    (tmp_path / "out.json").mkdir()
    with pytest.raises(InputError, match="TG421"):
        outputs.result(load_results.make())
    assert "SLO kept" in capsys.readouterr().out
    assert (tmp_path / "out.html").is_file()


@pytest.mark.parametrize("kept", [True, False])
def test_a_search_is_written_as_well(capsys, tmp_path, kept):
    probe = Probe(50.0, load_results.make(), () if kept else ("p99 is too high",), False)
    found = Found(50.0 if kept else 0.0, (probe,))
    LoadOutput.prepare("text", tmp_path / "out.json", tmp_path / "out.html", None).found(found)
    assert (json.loads((tmp_path / "out.json").read_text())["result"] is None) != kept
    assert ("is the highest rate" if kept else "No rate keeps the SLO") in (tmp_path / "out.html").read_text()
    assert ("is the highest rate" if kept else "No rate keeps the SLO") in capsys.readouterr().out
