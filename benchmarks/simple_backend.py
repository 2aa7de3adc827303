"""The simplest Python model for Triton that runs an ONNX file: what `backend.py` measures ours against."""

import json
import os

import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Loads `model.onnx` beside this file; runs each request by itself."""

    def initialize(self, args):  # noqa: ANN001, ANN201
        """Load the network with one thread, as the config of the other contestant asks for."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(json.loads(args["model_config"])["parameters"]["intra_op_thread_count"]["string_value"])
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")  # noqa: PTH118
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def execute(self, requests):  # noqa: ANN001, ANN201
        """Run the requests one after another."""
        responses = []
        for request in requests:
            feed = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            arrays = self.session.run(None, feed)
            tensors = [pb_utils.Tensor(name, array) for name, array in zip(self.names, arrays, strict=True)]
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return responses
