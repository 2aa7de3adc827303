"""Text files that people write, with positions: every value knows its line and column, so that a finding can point at it.

`text` reads a file and turns offsets into locations, `tree` is plain data with positions, `yaml` makes a tree out of YAML, `yaml_faults` says in people's words
why a text is not YAML. Nothing here knows what the data means.
"""

from tritongen.sources.text import MAX_BYTES, SourceText, read_text
from tritongen.sources.tree import Entry, Found, Node
from tritongen.sources.yaml import ParsedYaml, parse_yaml

__all__ = ["MAX_BYTES", "Entry", "Found", "Node", "ParsedYaml", "SourceText", "parse_yaml", "read_text"]
