"""Write the pages that are generated: docs/rules.md."""

from __future__ import annotations

from pathlib import Path

from tritongen.check.explain import rules_page

if __name__ == "__main__":
    (Path(__file__).parent / "rules.md").write_text(rules_page(), encoding="utf-8")
