"""The client's thin first form: one blocking request over gRPC or HTTP, with numpy arrays in and out."""

from tritongen.client.core import Endpoint, ModelMeta, TensorMeta, parse_url
from tritongen.client.sync import Client

__all__ = ["Client", "Endpoint", "ModelMeta", "TensorMeta", "parse_url"]
