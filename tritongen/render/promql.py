"""Texts inside the languages of Prometheus and Grafana, so that no name can mean anything but itself."""

from __future__ import annotations

import json


def promql_text(text: str) -> str:
    """A text as a PromQL string in double quotes, also where Grafana looks for variables (`$x`, `${x}`, `[[x]]`) before Prometheus sees it."""
    return json.dumps(text, ensure_ascii=False).replace("$", r"\u0024").replace("[", r"\u005b")


def title_text(text: str) -> str:
    """A text as a title of Grafana's. Titles have no escapes: where a variable could begin, a sign that only looks the same stands in its place."""
    return text.replace("$", "\uff04").replace("[[", "\uff3b\uff3b")
