"""Backends that run inside the embedded Triton, in its Python stub."""
