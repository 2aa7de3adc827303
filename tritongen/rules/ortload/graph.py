"""A model's interface in Triton's terms, whoever read it: ONNX Runtime's session, or the signature reader."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GraphTensor:
    """One input or output of the graph; `dims` has -1 for every dimension that is not fixed, and is empty for a scalar."""

    name: str
    data_type: str
    dims: tuple[int, ...]

    @property
    def can_batch(self) -> bool:
        """Whether the first dimension may stand for the batch."""
        return bool(self.dims) and self.dims[0] == -1


@dataclass(frozen=True)
class Graph:
    """A model's inputs and outputs by name; `initializers` are inputs with a default value in the file, which a request may override."""

    inputs: dict[str, GraphTensor]
    outputs: dict[str, GraphTensor]
    initializers: dict[str, GraphTensor] = field(default_factory=dict)

    @property
    def can_batch(self) -> bool:
        """Whether every input and every output has a free first dimension (the rule of NVIDIA's backend)."""
        return all(tensor.can_batch for tensor in (*self.inputs.values(), *self.outputs.values()))
