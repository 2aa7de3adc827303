"""The spec: what the user writes, as frozen values that every later stage reads."""
