"""The `onnxruntime` backend of the embedded Triton, in Python.

It runs in Triton's stub, where tritongen itself may not be importable: the modules here import each other relatively, numpy, onnxruntime and Triton's
`triton_python_backend_utils`, nothing else. The server copies this folder to `<backends>/onnxruntime/tritongen_onnxruntime` (see `tritongen.server.runtime`).
"""
