"""Write the pages that are generated: docs/rules.md and docs/spec.md."""

from __future__ import annotations

from pathlib import Path

from tritongen.check.explain import rules_page
from tritongen.report.reference import spec_page

if __name__ == "__main__":
    for name, page in (("rules.md", rules_page), ("spec.md", spec_page)):
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")
