"""What Triton says where it refuses a model, by the rule that says so beforehand.

Each expression is made of words of Triton 2.51 (release 24.10), seen in the log of the embedded server. They are as narrow as the rule: a model that is refused
for another reason than the predicted one is a disagreement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PARSER = r"failed to read text proto"
_NO_BACKEND = r"Could not determine backend for model|unexpected platform type ''"
_NO_CONFIG = r"failed to open text file for read .*config\.pbtxt: No such file"
_NO_VERSION = r"at least one version must be available under the version policy"
_STAT = r"failed to stat file|Load model from .* failed: ?Load model .* failed\. File doesn't exist"

CAUSES = {
    **{f"TG{number}": _PARSER for number in range(200, 220)},
    "TG220": rf"{_NO_BACKEND}|{_NO_VERSION}|{_NO_CONFIG}",
    "TG221": _NO_CONFIG,
    "TG222": _NO_CONFIG,
    "TG223": r"failed to stat file",
    "TG224": rf"{_NO_VERSION}|{_NO_BACKEND}",
    "TG225": rf"{_STAT}|No module named '\d+\.model'",
    "TG226": rf"{_STAT}|Model name must end with '\.py'|ModuleNotFoundError: No module named '1\.",
    "TG230": r"unexpected platform type '[^']+'",
    "TG231": r"unexpected 'platform' and 'backend' pair",
    "TG232": r"unable to find backend library|unable to find shared library",
    "TG233": _NO_BACKEND,
    "TG238": r"directory name must equal model name",
    "TG240": _NO_VERSION,
    "TG241": _STAT,
    "TG243": _NO_VERSION,
    "TG250": r"must specify 'name'",
    # Where an ensemble is completed, core holds it against its steps before it looks at its own tensors.
    "TG251": r"must specify 'data_type'|inconsistent data type: .*TYPE_INVALID",
    "TG252": r"must specify 'dims'|dimension must be integer >= 1, or -1|inconsistent shape",
    "TG253": r"different size for dims and reshape|cannot have empty reshape|reshape dimensions must be integer|reshape|inconsistent shape",
    "TG254": r"NHWC/NCHW require 3 dims",
    "TG255": r"shape tensors are only supported for TensorRT|Non-linear IO format is only supported",
    "TG256": r"batch input|batch output|source input|target output|non-string as string",
    "TG257": r"multiple label files|expected \d+ inputs but got|expects \d+ inputs, model provides",
    "TG258": r"failed to open text file for read (?!.*config\.pbtxt)",
    "TG260": r"'max_batch_size' must be non-negative",
    "TG261": r"dynamic batching preferred size must be",
    "TG270": r"priority level must be in range|must have priority level in range",
    "TG272": r"when 'preserve_ordering' is true",
    "TG275": r"Response Cache does not currently support",
    "TG280": r"has kind KIND_(CPU|MODEL) but specifies one or more GPUs",
    "TG283": r"specifies profile field which is only supported for TensorRT",
    "TG290": r"unknown Execution Accelerator",
    "TG300": r"failed to convert '.*' to|Invalid configuration value provided|Incorrect value for|invalid (argument|value)",
    "TG305": r"canonical path|archive_read",
    "TG311": r"batch size \d+ for .*, max allowed is",
    "TG312": r"expects all variable-size dimensions are specified",
    "TG313": r"unexpected shape for input|input byte size mismatch",
    "TG314": r"inference input '.*' data-type is",
    "TG315": r"expected \d+ inputs but got|unexpected inference input",
    "TG316": r"expected \d+ inputs but got",
    "TG317": r"warmup setting expects \d+ bytes|failed to open text file for read .*/warmup/|string length|incomplete string",
    "TG318": r"to have input_data_type set",
    "TG320": r"for ensemble|must have platform type 'ensemble'|must be set for ensemble|whose platform is not ensemble|Could not determine backend for model",
    "TG321": r"decoupled models",
    "TG322": r"must specify '(step|input_map|output_map|model_name)'",
    "TG323": r"is not written|is unused in ensemble|is not used",
    "TG324": r"can appear in an output map only once",
    "TG325": r"circular dependency between ensembles|not available or ambiguous|no version is available",
    "TG326": r"whose required version -?\d+ is not loaded|not available or ambiguous",
    "TG327": r"mapping to non-existing input|is not mapped to any ensemble tensors|mapped from non-existing output",
    "TG328": r"inconsistent (shape|data type)",
    "TG329": r"allows maximum batch size",
    "TG330": r"multiple CONTROL_SEQUENCE_\w+ tensors|for multiple control kinds|control tensor must have a name",
    "TG331": r"'(int32|fp32|bool)_false_true'",
    "TG332": r"unexpected data type for control CONTROL_SEQUENCE_CORRID|must not specify either",
    "TG333": r"sequence batching (preferred batch size must be|minimum slot utilization)",
    "TG336": r"initial_state|initial state|State input name '.*' specified more than once",
    "TG340": r"Load model from .* failed",
    "TG341": r"configuration expects \d+ inputs, model provides|At least one output should be requested",
    "TG342": r"unexpected inference (in|out)put|model does not provide that (in|out)put",
    "TG343": r"expects data-?type",
    "TG344": r"the model expects \d+ dimensions|but dims \[.*\] is expected",
    "TG345": r"does not support batching|for the model to support batching",
    "TG346": r"scalar tensor",
    "TG347": r"optional input|for ragged input|configuration expects \d+ inputs, model provides",
    "TG360": _PARSER,
    "TG381": r"unable to find backend library",
    "TG382": r"unable to find 'libtritonrepoagent_\.so'",
    "TG383": r"unable to find (Python backend based )?backend library|unable to load shared library",
    "TG390": r"SyntaxError|IndentationError",
    "TG391": r"has no attribute 'TritonPythonModel'",
    "TG399": r"must return a valid pb\.ModelConfig object|TypeError: .*auto_complete_config\(\)",
}
"""Code → a regular expression that Triton's reason matches."""

NOT_SHOWN = {
    "TG227": "the server here runs as whoever runs the tests, and a pipe is waited for without an end",
    "TG229": "needs two repositories in one server",
    "TG235": "a backend that other releases had, and this server never has",
    "TG242": "24.10 dies of it",
    "TG307": "24.10 dies of it",
    "TG278": "a field of later releases",
    "TG281": "the server here moves GPU instances to the CPU",
    "TG282": "the server here moves GPU instances to the CPU",
    "TG284": "about TensorRT plans",
    "TG292": "an accelerator of GPUs",
    "TG293": "an accelerator of GPUs",
    "TG349": "ONNX Runtime is newer here than in any release that refuses the file",
    "TG350": "about TensorRT plans",
    "TG351": "about TensorRT plans",
    "TG352": "about TensorRT plans",
    "TG353": "about TensorRT plans",
    "TG354": "about TensorRT plans",
    "TG355": "a deep-learning accelerator of Jetson",
    "TG358": "about TensorRT plans",
    "TG357": "about TensorRT plans",
    "TG365": "about TensorRT plans",
    "TG361": "an ONNX Runtime of releases before 24.10",
    "TG393": "the embedded server has no vllm backend",
    "TG394": "the embedded server has no vllm backend",
    "TG396": "the embedded server has no vllm backend",
    "TG397": "the embedded server has no vllm backend",
}
"""Rules whose refusal this server cannot show, and why; their cases are judged by the rules alone (tests/unit/rules)."""


def explains(codes: Iterable[str], reasons: Iterable[str]) -> bool:
    """Whether one of the reasons is what one of the codes predicts."""
    text = " ".join(reasons)
    return any(code in CAUSES and re.search(CAUSES[code], text, re.DOTALL) for code in codes)
