"""Texts of config.pbtxt for the tests of the reader: good ones in several styles, and makers of bad ones.

In the good ones every value is preceded by «path», the path under which `ReadConfig.locate` must find exactly that place; `plain` takes the marks away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.protobuf import text_format
from hypothesis import strategies as st

from tritongen.modelconfig import ModelConfig

CLASSIC = """\
# A classifier, in the style of Triton's own examples.
name: «name»"resnet50"
platform: «platform»"onnxruntime_onnx"
max_batch_size: «max_batch_size»8

«input»input [
  «input.0»{
    name: «input.0.name»"image"   # NCHW
    data_type: «input.0.data_type»TYPE_FP32
    format: «input.0.format»FORMAT_NCHW
    «input.0.dims»dims: [ «input.0.dims.0»3, «input.0.dims.1»224, «input.0.dims.2»-1 ]
    «input.0.reshape»reshape { «input.0.reshape.shape»shape: [ «input.0.reshape.shape.0»1 ] }
  },
  «input.1»{
    name: «input.1.name»"mask"
    data_type: «input.1.data_type»TYPE_BOOL
    «input.1.dims»dims: «input.1.dims.0»1
    optional: «input.1.optional»true
  }
]
«output»output [
  «output.0»{
    name: «output.0.name»"prob"
    data_type: «output.0.data_type»TYPE_FP32
    «output.0.dims»dims: [ «output.0.dims.0»1000 ]
    label_filename: «output.0.label_filename»"labels.txt"
  }
]
«instance_group»instance_group [
  «instance_group.0»{
    count: «instance_group.0.count»2
    kind: «instance_group.0.kind»KIND_GPU
    «instance_group.0.gpus»gpus: [ «instance_group.0.gpus.0»0, «instance_group.0.gpus.1»1 ]
  }
]
«dynamic_batching»dynamic_batching {
  «dynamic_batching.preferred_batch_size»preferred_batch_size: [ «dynamic_batching.preferred_batch_size.0»4, «dynamic_batching.preferred_batch_size.1»8 ]
  max_queue_delay_microseconds: «dynamic_batching.max_queue_delay_microseconds»100
  «dynamic_batching.default_queue_policy»default_queue_policy { timeout_action: «dynamic_batching.default_queue_policy.timeout_action»DELAY }
  «dynamic_batching.priority_queue_policy»priority_queue_policy {
    key: «dynamic_batching.priority_queue_policy.1»1
    value: { max_queue_size: «dynamic_batching.priority_queue_policy.1.max_queue_size»10 }
  }
}
«optimization»optimization { «optimization.execution_accelerators»execution_accelerators {
  «optimization.execution_accelerators.gpu_execution_accelerator»gpu_execution_accelerator : [ \
«optimization.execution_accelerators.gpu_execution_accelerator.0»{
    name : «optimization.execution_accelerators.gpu_execution_accelerator.0.name»"tensorrt"
    «optimization.execution_accelerators.gpu_execution_accelerator.0.parameters»parameters { key: "precision_mode" value: \
«optimization.execution_accelerators.gpu_execution_accelerator.0.parameters.precision_mode»"FP16" }
    parameters { key: "max_workspace_size_bytes" value: \
«optimization.execution_accelerators.gpu_execution_accelerator.0.parameters.max_workspace_size_bytes»"1073741824" }
  } ]
} }
«parameters»parameters { key: «parameters.intra_op_thread_count»"intra_op_thread_count" value: { string_value: \
«parameters.intra_op_thread_count.string_value»"4" } }
parameters { value { string_value: «parameters.mode.string_value»"1" } key: «parameters.mode»"mode" }
«version_policy»version_policy: { «version_policy.latest»latest { num_versions: «version_policy.latest.num_versions»2 } }
«model_warmup»model_warmup [ «model_warmup.0»{
  name: «model_warmup.0.name»"one"
  batch_size: «model_warmup.0.batch_size»1
  «model_warmup.0.inputs»inputs { key: «model_warmup.0.inputs.image»"image" value: { data_type: «model_warmup.0.inputs.image.data_type»TYPE_FP32 \
«model_warmup.0.inputs.image.dims»dims: [ «model_warmup.0.inputs.image.dims.0»3 ] zero_data: «model_warmup.0.inputs.image.zero_data»true } }
} ]
"""

COMPACT = """\
name:«name»'e' "2" 'e';platform:«platform»"ensemble",max_batch_size:«max_batch_size»0x10 «input»input<name:«input.0.name»"a";data_type:«input.0.data_type»11;\
«input.0.dims»dims:«input.0.dims.0»- 1,dims:«input.0.dims.1»010>«output»output:[«output.0»<name:«output.0.name»"z" «output.0.dims»dims:[]>]\
«ensemble_scheduling»ensemble_scheduling:{«ensemble_scheduling.step»step[«ensemble_scheduling.step.0»{model_name:«ensemble_scheduling.step.0.model_name»"m",\
model_version:«ensemble_scheduling.step.0.model_version»-1;«ensemble_scheduling.step.0.input_map»input_map{key:"x"value:«ensemble_scheduling.step.0.input_map.x»"a"}\
«ensemble_scheduling.step.0.output_map»output_map<value:«ensemble_scheduling.step.0.output_map.y»"z" key:"y">}]}
"""

REPEATED = """\
# Repeated fields one by one, comments in every place, and Windows line ends.\r
backend # a
: # b
  «backend»"onnxruntime" # c\r
«input»input { name: «input.0.name»"a" data_type: «input.0.data_type»TYPE_STRING «input.0.dims»dims: «input.0.dims.0»1 dims: «input.0.dims.1»2 }\r
input { name: «input.1.name»"b" data_type: «input.1.data_type»TYPE_INT64 «input.1.dims»dims: [ «input.1.dims.0»3, # three
 «input.1.dims.1»4 ] dims: «input.1.dims.2»5 }\r
\t«input.2»input\t{ name: «input.2.name»"\\x63\\144\\n" }
«sequence_batching»sequence_batching {
  «sequence_batching.direct»direct { minimum_slot_utilization: «sequence_batching.direct.minimum_slot_utilization»1.5f }
  max_sequence_idle_microseconds: «sequence_batching.max_sequence_idle_microseconds»5000000
  «sequence_batching.control_input»control_input { name: «sequence_batching.control_input.0.name»"START" «sequence_batching.control_input.0.control»control {
    kind: «sequence_batching.control_input.0.control.0.kind»CONTROL_SEQUENCE_START \
«sequence_batching.control_input.0.control.0.fp32_false_true»fp32_false_true: [ «sequence_batching.control_input.0.control.0.fp32_false_true.0»0, \
«sequence_batching.control_input.0.control.0.fp32_false_true.1»1.0 ] } }
}
«instance_group»instance_group { kind: «instance_group.0.kind»KIND_CPU «instance_group.0.profile»profile: [ «instance_group.0.profile.0»"p", \
«instance_group.0.profile.1»'q' ] }
«instance_group.1»instance_group { passive: «instance_group.1.passive»t }
«response_cache»response_cache { enable: «response_cache.enable»True }
«model_transaction_policy»model_transaction_policy < decoupled: «model_transaction_policy.decoupled»0 >
«metric_tags»metric_tags { key: "k" value: «metric_tags.k»"v é" }
"""

STYLES = {"classic": CLASSIC, "compact": COMPACT, "repeated": REPEATED}
_MARK = re.compile("«([^»]*)»")


def plain(marked: str) -> str:
    """The text without its marks."""
    return _MARK.sub("", marked)


def marks(marked: str) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Each path, and the offset in the plain text at which it must be found."""
    taken = 0
    for match in _MARK.finditer(marked):
        yield tuple(int(part) if part.isdigit() else part for part in match.group(1).split(".")), match.start() - taken
        taken += len(match.group())


GOOD = tuple(plain(text) for text in STYLES.values())


def python_accepts(data: bytes) -> object | None:
    """The message that `google.protobuf.text_format` reads, or None where it refuses the text; it raises whatever it happens to for what is wrong."""
    try:
        return text_format.Parse(data, ModelConfig())
    except (text_format.ParseError, ValueError):
        return None


_DIFFERENT = re.compile(
    rb"-[\s#]|\+|[0-9]_|\b0[0-9bBoOxX]|(?i:inff|nanf)|[0-9.][fF][fF]|-0"  # numbers
    rb"|\\(?:[^abfnrtv\\'\"0-7x]|[2-7][0-7][0-7]|x[^0-7]|\Z)"  # escapes beyond ASCII, or unknown
    rb"|[\x00\x1c-\x1f]|(?:\"\"|''|[^0-9]0)[^{}]*(?:key|value)"  # blanks, and entries of maps that say something twice
)


def may_differ(data: bytes) -> bool:
    """True where a text has anything that Python's parser and the C++ one are known to read differently (`reading.DIFFERENCES`)."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return True
    return bool(_DIFFERENT.search(data)) or any(char.isspace() for char in text if char > "\x7f" or char == "\x1f")


def _words() -> list[str]:
    words: set[str] = set()
    pending = [ModelConfig.DESCRIPTOR]
    seen = set()
    while pending:
        descriptor = pending.pop()
        if descriptor.full_name in seen:
            continue
        seen.add(descriptor.full_name)
        for field in descriptor.fields:
            words.add(field.name)
            if field.enum_type is not None:
                words.update(value.name for value in field.enum_type.values)
            if field.message_type is not None:
                pending.append(field.message_type)
    return sorted(words)


WORDS = _words()
MARKS = ["{{", "}}", "${", "//", "/*", "--", "\n+", "\n-", "\n```\n", "@@ -1 +1 @@\n", "<<<<<<< a\n", "=======\n", ">>>>>>> b\n"]
SYMBOLS = [*"{}[]<>:,;- \n\t\r#\"'\\.=/+", *MARKS, "\u201c", "\u201d", "\xa0", "\0", "é"]
VALUES = [
    "1",
    "0",
    "-1",
    "8",
    "010",
    "0x1F",
    "08",
    "1.5",
    ".5",
    "1e5",
    "inf",
    "true",
    "f",
    '"x"',
    "'y'",
    '"a\\n\\x41"',
    '"\\q"',
    '""',
    "9" * 30,
    "1_0",
    "+1",
    "- 1",
]


def soups() -> st.SearchStrategy[bytes]:
    """Words, symbols and values of a config in no order."""
    piece = st.one_of(st.sampled_from(WORDS), st.sampled_from(SYMBOLS), st.sampled_from(VALUES))
    return st.lists(st.tuples(piece, st.sampled_from(["", " ", "\n", ": "])), max_size=24).map(lambda pieces: "".join(map("".join, pieces)).encode())


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A good config with one to three characters, tokens or lines deleted, doubled, swapped or put in."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 3))):
        unit = draw(st.sampled_from(["characters", "tokens", "lines"]))
        parts = list(text) if unit == "characters" else re.findall(r"\w+|\s+|[^\w\s]", text) if unit == "tokens" else text.splitlines(keepends=True)
        if not parts:
            break
        index, other = draw(st.integers(0, len(parts) - 1)), draw(st.integers(0, len(parts) - 1))
        change = draw(st.sampled_from(["delete", "double", "swap", "insert"]))
        if change == "delete":
            del parts[index]
        elif change == "double":
            parts.insert(index, parts[index])
        elif change == "swap":
            parts[index], parts[other] = parts[other], parts[index]
        else:
            parts.insert(index, draw(st.one_of(st.sampled_from(SYMBOLS), st.sampled_from(VALUES), st.sampled_from(WORDS))))
        text = "".join(parts)
    return text.encode()
