"""What the containers of a deployment are called, and whom they run as. Pure."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath

from tritongen.spec import Spec
from tritongen.spec.deploy import LONGEST_PROJECT

_HASH = 8
"""Digits of a hash in a project's name."""

_GRAFANA_USER = "472:0"
"""The user of Grafana's images."""

_PASSWORD = "/run/secrets/grafana-admin-password"  # noqa: S105 - a path
PASSWORD_CHECK = (
    f"grep -q '[^[:space:]]' {_PASSWORD} || {{ echo 'deploy.monitoring.admin_password: the file is empty, or user '$(id -u)' may not read it' >&2; exit 3; }};"
    " exec /run.sh"
)
"""Grafana's own start (grafana/packaging/docker/run.sh), where there is a password."""


def is_root(user: str) -> bool:
    """Whether a container's user, `number` or `number:group`, is root."""
    return int(user.partition(":")[0]) == 0


def grafana_user(spec: Spec) -> str:
    """The user that Grafana runs as: the server's, so that one file can be read by it, and never root."""
    return _GRAFANA_USER if is_root(spec.deploy.user) else spec.deploy.user


def project_name(spec: Spec, spec_path: str) -> str:
    """The name of the compose project: that which the spec states, else its file's, or its first model's where the file is just called spec.

    Not the folder's: folders of many services are called deploy, and compose would take them for one project. For the same reason a name that loses letters,
    since compose knows Latin ones alone, or is cut, ends with a hash of the whole.
    """
    stem = PurePosixPath(spec_path).stem
    name = spec.models[0].name if stem == "spec" else stem
    return spec.deploy.name or _as_project(name)


def _as_project(name: str) -> str:
    kept = re.sub(r"[^a-z0-9_-]", "-", name.lower()).lstrip("_-")
    if kept and len(kept) <= LONGEST_PROJECT and not any(char.isalnum() and not char.isascii() for char in name):
        return kept
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH]
    return f"{kept[: LONGEST_PROJECT - _HASH - 1].rstrip('_-') or 'tritongen'}-{digest}"
