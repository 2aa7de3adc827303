"""What is said of folders and files that cannot be opened. The facts are made here: whoever runs the tests as root may read everything."""

from pathlib import Path

import pytest

from tritongen.check.contexts import load_model
from tritongen.check.evaluate import evaluate_models
from tritongen.repository.scan import FileFacts, ModelFolder, scan_repository
from tritongen.rules import ServerFacts
from tritongen.rules.context import TEXT_BYTES

CONFIG = b"""backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [4] }
output { name: "y" data_type: TYPE_FP32 dims: [4] label_filename: "labels.txt" }
"""
LOCKED = {"readable": False, "mode": 0}
LARGE = TEXT_BYTES + 1
"""Of a file that is not looked into."""


def said(folder):
    found = evaluate_models([load_model(folder, ServerFacts())])
    return [(finding.diagnostic.code, finding.diagnostic.message, finding.diagnostic.hint) for finding in found]


def test_a_folder_that_may_not_be_listed_is_called_that_and_nothing_else():
    ((code, message, hint),) = said(ModelFolder("m", Path("/repository/m"), locked=0))
    assert (code, hint) == ("TG227", "chmod a+rx /repository/m")
    assert "the folder 'm' cannot be read (mode 000)" in message


@pytest.mark.parametrize("path", ["1", "1/model.py", "labels.txt"])
def test_whatever_triton_opens_and_may_not_read_is_said_once(path):
    entries = {"1": FileFacts("folder"), "1/model.py": FileFacts("file", LARGE), "labels.txt": FileFacts("file", 4)}
    entries[path] = FileFacts(entries[path].kind, **LOCKED)
    ((code, message, _),) = said(ModelFolder("m", Path("/repository/m"), entries, CONFIG))
    assert code == "TG227"
    assert message.startswith(f"'{path}' cannot be read (mode 000)")


def test_a_locked_config_is_said_once_with_the_file_to_unlock():
    entries = {"config.pbtxt": FileFacts("file", 9, **LOCKED)}
    ((code, message, hint),) = said(ModelFolder("m", Path("/repository/m"), entries, config_problem="Permission denied (mode 000)"))
    assert (code, message) == ("TG075", "config.pbtxt cannot be read: Permission denied (mode 000)")
    assert hint.endswith("chmod a+r /repository/m/config.pbtxt")


def test_what_is_not_opened_may_be_locked():
    entries = {"1": FileFacts("folder"), "1/model.py": FileFacts("file", LARGE), "labels.txt": FileFacts("file", 4), "notes": FileFacts("folder", **LOCKED)}
    assert said(ModelFolder("m", Path("/repository/m"), entries, CONFIG)) == []


def test_a_folder_in_place_of_the_config_crashes_the_server(tmp_path):
    (tmp_path / "m/config.pbtxt").mkdir(parents=True)
    (found,) = evaluate_models([load_model(folder, ServerFacts()) for folder in scan_repository(tmp_path).models])
    assert found.diagnostic.code == "TG075"
    assert "crashes" in found.diagnostic.consequence


def test_a_model_that_is_a_link_out_of_the_repository_is_a_warning(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository/m").symlink_to(tmp_path / "elsewhere")
    (found,) = evaluate_models([load_model(folder, ServerFacts()) for folder in scan_repository(tmp_path / "repository").models])
    assert (found.diagnostic.code, found.diagnostic.severity.value) == ("TG076", "warning")
    assert "nothing about this model was checked" in found.diagnostic.consequence
