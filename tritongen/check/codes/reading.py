"""TG200 to TG219: what keeps a config.pbtxt from being parsed. Triton's log has one line for it; a client sees 'failed to poll from model repository'."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

_SOURCE = " Triton parses the file with protobuf's TextFormat, stops at the first mistake, and loads nothing of the model."
_SAFE = "`tritongen check --fix` mends it where only one meaning is possible."
_INPUT_AS_ONNX_SAYS = 'input { name: "x" data_type: TYPE_FLOAT32 dims: [ 3 ] }'
_INPUT = '{ name: "x" data_type: TYPE_FP32 dims: [ 3 ] }'


def _entry(code: str, name: str, summary: str, why: str, fix: str, bad: str = "", good: str = "", *, fixable: bool = False) -> CodeEntry:
    return CodeEntry(code, name, Consequence.REFUSED, summary, why + _SOURCE, f"{fix} {_SAFE}" if fixable else fix, bad, good, fixable)


ENTRIES = (
    _entry(
        "TG200",
        "config-that-is-something-else",
        "config.pbtxt is protobuf text in UTF-8.",
        "JSON, YAML, web pages, Git LFS pointers, binary files and texts in UTF-16 are found under that name.",
        "Write the config as protobuf text.",
        '{"name": "m", "max_batch_size": 8}',
        'name: "m"\nmax_batch_size: 8',
        fixable=True,
    ),
    _entry(
        "TG201",
        "unbalanced-bracket",
        "Every bracket is closed, once.",
        "The message says where it was opened.",
        "Add or remove the bracket.",
        "dynamic_batching {",
        "dynamic_batching { }",
        fixable=True,
    ),
    _entry(
        "TG202",
        "wrong-punctuation",
        "Names and scalar values are separated by a colon, items of a list by commas.",
        "`=` and a trailing comma come from other formats.",
        "Write what the hint shows.",
        "max_batch_size = 8",
        "max_batch_size: 8",
        fixable=True,
    ),
    _entry(
        "TG203",
        "stray-text",
        "Nothing stands between the fields but blanks, commas, semicolons and comments.",
        "Words there are neither a field nor a comment. The fences of Markdown and the marks of a patch (`+`, `-`, `@@`) come with text that was copied.",
        "Remove it, or begin the line with `#`.",
        "max_batch_size: 8 requests",
        "max_batch_size: 8",
        fixable=True,
    ),
    _entry(
        "TG204",
        "wrong-quotes",
        "Strings are in straight quotes, closed on the same line, with known escapes.",
        "Word processors and chat programs turn quotes into typographic ones.",
        "Write straight quotes.",
        "name: \u201cm\u201d",
        'name: "m"',
        fixable=True,
    ),
    _entry(
        "TG205",
        "unfilled-template",
        "Every place of a template is filled.",
        "The tool that fills the template did not run, or lacked the value. In a string that parses: Triton takes it for the text itself, and the finding is a "
        "warning. Values of parameters are left alone, as backends give such places a meaning of their own.",
        "Fill the place.",
        "max_batch_size: ${MAX_BATCH}",
        "max_batch_size: 8",
    ),
    _entry(
        "TG206",
        "merge-conflict",
        "The file has no marks of a merge conflict.",
        "git wrote both sides into it.",
        "Keep one side and remove the marks.",
        "<<<<<<< HEAD\nmax_batch_size: 8\n=======\nmax_batch_size: 4\n>>>>>>> feature",
        "max_batch_size: 8",
    ),
    _entry(
        "TG207",
        "comment-of-another-language",
        "Comments begin with `#`.",
        "`//`, `--` and `/* */` are comments elsewhere.",
        "Write `#`.",
        "max_batch_size: 8  // per request",
        "max_batch_size: 8  # per request",
        fixable=True,
    ),
    _entry(
        "TG208",
        "unknown-field",
        "Fields are those of ModelConfig.",
        "A misspelt field is not skipped. The closest field is shown. A message around the whole config, as `model_config { ... }`, is no field either.",
        "Correct the name.",
        f"inputs {_INPUT}",
        f"input {_INPUT}",
        fixable=True,
    ),
    _entry(
        "TG209",
        "field-of-another-message",
        "Fields stand in the message that they belong to.",
        "A field one level too high or too deep is unknown there.",
        "Move it as the hint shows.",
        "max_batch_size: 8\npreferred_batch_size: [ 8 ]",
        "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 8 ] }",
    ),
    _entry(
        "TG210",
        "value-of-wrong-type",
        "Values have the type of their field.",
        "Numbers and enum names stand without quotes, strings in quotes.",
        "Add or remove the quotes.",
        'max_batch_size: "8"',
        "max_batch_size: 8",
        fixable=True,
    ),
    _entry(
        "TG211",
        "unknown-enum-value",
        "Enum values are those of their enum.",
        "`TYPE_FLOAT32` and `TYPE_BYTES` are names of other tools for TYPE_FP32 and TYPE_STRING.",
        "Write the value that the hint shows.",
        _INPUT_AS_ONNX_SAYS,
        f"input {_INPUT}",
        fixable=True,
    ),
    _entry(
        "TG212",
        "number-out-of-range",
        "Numbers are well formed and fit their field.",
        "A leading zero makes an octal number, and 32-bit fields end at 2147483647.",
        "Write a number that fits.",
        "max_batch_size: 08",
        "max_batch_size: 8",
    ),
    _entry(
        "TG213",
        "field-twice",
        "A field that is not repeated is given once.",
        "Both places are shown; only one of the values can be meant. A key that is given twice in a map, as in parameters, parses: the last one counts, and "
        "the finding is a warning.",
        "Remove one of the two.",
        "max_batch_size: 8\nmax_batch_size: 16",
        "max_batch_size: 16",
    ),
    _entry(
        "TG214",
        "two-of-one-choice",
        "Of fields that exclude each other one is given.",
        "dynamic_batching, sequence_batching and ensemble_scheduling are one choice; so are the version policies.",
        "Keep one of the two.",
        "dynamic_batching { }\nsequence_batching { }",
        "dynamic_batching { }",
    ),
    _entry(
        "TG215",
        "field-without-value",
        "Every field has a value.",
        "A name alone sets nothing.",
        "Add the value, or remove the name.",
        "max_batch_size:",
        "max_batch_size: 8",
    ),
    _entry(
        "TG216",
        "parameter-in-the-other-shape",
        "Parameters of a model are `{ string_value: ... }`, those of an accelerator plain strings.",
        "`parameters` is map<string, ModelParameter> in ModelConfig and map<string, string> in an accelerator.",
        "Write the value in the shape that the hint shows.",
        'parameters { key: "intra_op_thread_count" value: "4" }',
        'parameters { key: "intra_op_thread_count" value: { string_value: "4" } }',
        fixable=True,
    ),
    _entry(
        "TG217",
        "extension",
        "ModelConfig has no extensions.",
        "`[name]: value` sets an extension or the content of an Any.",
        "Use `parameters` for values of your own.",
        "[my.extension]: 1",
        'parameters { key: "my" value: { string_value: "1" } }',
    ),
    _entry(
        "TG218",
        "nested-too-deep",
        "Brackets are nested as deep as ModelConfig is, and no deeper.",
        "No field of ModelConfig needs more than a few levels.",
        "Remove the surplus brackets.",
    ),
    _entry(
        "TG219",
        "more-mistakes",
        "A file has fewer mistakes than are listed in one run.",
        "After a hundred findings the rest is counted.",
        "Mend those above first.",
    ),
)
