"""What a plan was made from: written beside it when it is built. What makes a plan stale is `staleness`' business.

The build script writes and reads manifests too (`templates/build_plans.sh.j2`): one key on a line, and in one form only, so that both judge alike.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tritongen.recipe import PlanRecipe, options_fingerprint
from tritongen.signature.plan import TENSORRT, TENSORRT_RTX

FORMAT = 1
"""Version of a manifest's format."""

_MOST_BYTES = 1 << 24
"""A larger file is no manifest that anybody wrote."""

_KINDS = (TENSORRT, TENSORRT_RTX)
_SHA256 = r"[0-9a-f]{64}"
CAPABILITY = r"[0-9]{1,2}\.[0-9]"
"""What a GPU's compute capability looks like, as an expression that grep -E knows, too."""

FORMS = {
    "kind": "|".join(_KINDS),
    "tensorrt": r"[0-9]{1,5}(\.[0-9]{1,5}){2,3}",
    "compute_capability": rf"({CAPABILITY}(, {CAPABILITY})*)?",
    "sha256": _SHA256,
    "fingerprint": _SHA256,
}
"""What values of a manifest look like, as expressions that grep -E knows, too; the script that builds has the same."""


@dataclass(frozen=True)
class Builder:
    """Who built a plan, and on what. Empty texts are what nobody knows.

    Attributes:
        kind: `tensorrt` or `tensorrt-rtx`.
        tensorrt: version of that library, three or four numbers.
        cuda: version of CUDA: the container's, or the driver's where it was built outside of one.
        compute_capability: of the GPU, such as `8.6`; of several that a plan of TensorRT-RTX is for with ", " between them.
        gpu: its name.
        driver: version of the driver.
        release: the container release as YY.MM: that in which the script built it, or for which `tritongen build` did, which holds its TensorRT against that
            release's first. Empty for a plan of TensorRT-RTX, and of a script outside of a container.
        tritongen: version of tritongen that built it, or that wrote the script.
    """

    kind: str
    tensorrt: str
    cuda: str = ""
    compute_capability: str = ""
    gpu: str = ""
    driver: str = ""
    release: str = ""
    tritongen: str = ""


@dataclass(frozen=True)
class Manifest:
    """What one plan was made from.

    Attributes:
        sha256: SHA-256 (hex) of the plan's own content.
        options: the recipe's `build_options`.
        builder: what built it.
    """

    sha256: str
    options: Mapping[str, Any]
    builder: Builder

    @property
    def fingerprint(self) -> str:
        """That of the recipe with these options."""
        return options_fingerprint(self.options)


def make_manifest(recipe: PlanRecipe, plan_sha256: str, builder: Builder) -> Manifest:
    """The manifest of a plan with this hash that `builder` made by `recipe`."""
    return Manifest(plan_sha256, plain_options(recipe), builder)


def plain_options(recipe: PlanRecipe) -> dict[str, Any]:
    """The build options as they are read back from text: with lists in place of tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(recipe.build_options))
    return plain


def manifest_path(version: int, plan: str) -> PurePosixPath:
    """Where the manifest of a plan lies in the model's artifacts folder: one file for each plan, since each GPU's is built on another machine."""
    return PurePosixPath(str(version), f"{plan}.manifest.json")


def print_manifest(manifest: Manifest) -> str:
    """The manifest as the JSON text of a file; equal manifests give equal text, each key on a line of its own, `options` as a whole."""
    plain = {**dataclasses.asdict(manifest.builder), "sha256": manifest.sha256, "fingerprint": manifest.fingerprint, "format": FORMAT}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(plain.items())]
    return "{\n" + ",\n".join([*lines, f' "options": {json.dumps(manifest.options, sort_keys=True)}']) + "\n}\n"


def read_manifest(text: str) -> Manifest:
    """The manifest in such a text.

    Only the very text that `print_manifest` makes is one: a shell script reads it, too, line by line, and both must judge alike. Raises ValueError, with the
    reason in words, where it is another, or one of a later format.
    """
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict) or "fingerprint" not in data:
        raise ValueError("it is no manifest of a plan")
    if data.get("format") != FORMAT:
        raise ValueError(f"it has the format {data.get('format')!r}, and this tritongen reads format {FORMAT}")
    names = [field.name for field in dataclasses.fields(Builder)]
    texts = {name: data.get(name) for name in (*names, "sha256", "fingerprint")}
    wrong = [name for name, value in texts.items() if not isinstance(value, str) or not re.fullmatch(FORMS.get(name, r".*"), value)]
    options = data.get("options")
    if isinstance(options, dict) and "fingerprint" not in wrong:
        wrong += [] if options_fingerprint(options) == data["fingerprint"] else ["options"]
    elif not isinstance(options, dict):
        wrong.append("options")
    if wrong:
        raise ValueError(f"it is damaged, or was edited by hand: {', '.join(wrong)}")
    manifest = Manifest(data["sha256"], data["options"], Builder(**{name: data[name] for name in names}))
    if print_manifest(manifest) != text:
        raise ValueError("it was edited by hand, or written anew by another program")
    return manifest


def load_manifest(path: Path) -> Manifest | None:
    """The manifest in a file; None where there is no such file. Raises ValueError where it is not one, OSError where it cannot be read."""
    if not path.is_file():
        return None
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes, and was not read")
    return read_manifest(path.read_bytes().decode())
