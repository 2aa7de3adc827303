"""The `onnxruntime` backend of the embedded Triton, in Python.

It runs in Triton's stub, where tritongen itself may not be importable: the modules here import each other and `tritongen.rules.ortload` relatively, numpy,
onnxruntime and Triton's `triton_python_backend_utils`, nothing else. The server copies both folders below `<backends>/onnxruntime/tritongen_backend` (see
`tritongen.server.runtime`).
"""
