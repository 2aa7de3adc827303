"""tritongen: one spec in; a served, verified, load-tested model on NVIDIA Triton out."""

__version__ = "0.1.0"
