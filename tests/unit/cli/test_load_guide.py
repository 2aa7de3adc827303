"""The commands in the guide to load tests can be given."""

import re
import shlex
from pathlib import Path

import pytest

from tritongen.cli.load import command
from tritongen.load.payloads import MOST_POOL_BYTES
from tritongen.samples.audio import AUDIO_SUFFIXES
from tritongen.samples.files import MOST_FILES
from tritongen.samples.images import IMAGE_SUFFIXES
from tritongen.sources import SourceText, parse_yaml
from tritongen.spec import Spec
from tritongen.spec.scenarios import MOST_DIFFERENT, Scenario
from tritongen.spec.traffic import parse_mix, parse_slo, parse_steps

GUIDE = (Path(__file__).parents[3] / "docs/load.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:\$|- run:) (tritongen load .*)$", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_has_options_that_there_are(line):
    context = command.make_context("load", shlex.split(line)[2:])
    assert context.params["target"] in ("recognizer", "spec.yaml", None)
    if context.params["slo"]:
        parse_slo(context.params["slo"])
    if context.params["stages"]:
        parse_steps(context.params["stages"])


def test_the_specs_of_the_guide_are_specs():
    first, sample = (parse_yaml(SourceText("guide", text)).root.plain() for text in re.findall(r"```yaml\n((?:models|samples):.*?)```", GUIDE, re.DOTALL))
    spec = Spec.model_validate({"version": 1, **first})
    assert set(spec.load.scenarios) == {"steady", "evening"}
    assert Spec.model_validate({"version": 1, "models": [{"name": "m", "source": "m.onnx", **sample}]}).models[0].samples["image"].files == "pictures"


def test_the_limits_of_files_are_those_of_the_code():
    assert f"folders of up to {MOST_FILES:,} files" in GUIDE
    assert f"at most {MOST_POOL_BYTES >> 30} GiB" in GUIDE
    assert f"({Scenario().pool} where nothing is said)" in GUIDE
    (limit,) = (option.type.max for option in command.params if option.name == "pool")
    assert limit == MOST_DIFFERENT
    assert all(suffix in GUIDE for suffix in IMAGE_SUFFIXES | AUDIO_SUFFIXES)


def test_every_option_is_spoken_of():
    unspoken = {option for parameter in command.params for option in parameter.opts if option.startswith("--") and option not in GUIDE}
    assert unspoken <= {"--warmup", "--seed", "--output", "--url"}
    assert len(COMMANDS) >= 5


def test_the_mix_of_the_guide_is_one():
    (mix,) = re.findall(r"--batch-mix ([^`]+)`", GUIDE)
    assert parse_mix(mix) == (("1", 0.7), ("8", 0.3))


def test_the_limits_are_those_of_the_code():
    from tritongen.load import plan, result, verdict

    assert f"more than {result._BUSY:.0%} of a core".replace("%", " %") in GUIDE
    assert f"less than {result._REACHED:.0%}".replace("%", " %") in GUIDE
    assert f"more than {verdict.LATE_US / 1000:g} ms late" in GUIDE
    assert f"{plan.LoadPlan((), 'u').most_under_way:,} were under way" in GUIDE
