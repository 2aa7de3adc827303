"""`spec.yaml` → `LoadedSpec`, or every finding at once.

The text is read into a tree with positions, and its data is validated. Findings made here: TG003 the file is no spec; the rest comes from
`tritongen.sources` and `validation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError, SpecError
from tritongen.sources import Node, SourceText, parse_yaml, read_text
from tritongen.spec.models import Source, Spec
from tritongen.spec.paths import resolve_source
from tritongen.spec.places import KeyPath, Places
from tritongen.spec.validation import Check


@dataclass(frozen=True)
class LoadedSpec:
    """A spec and where each of its values stands.

    Attributes:
        spec: the validated values; every model already holds what `defaults` gave it.
        path: the spec file, as it was given.

    Where models are left out, since something is wrong with them, the others are numbered anew; paths begin with these numbers.
    """

    spec: Spec
    path: Path
    _places: Places = field(repr=False, compare=False)
    _numbers: tuple[int, ...] = field(repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """The absolute folder of the spec, to which its paths are relative. A linked spec file counts where the link is."""
        return self.path.absolute().parent

    def locate(self, path: Sequence[str | int]) -> Location:
        """The place of a key such as `("models", 0, "batching", "max")`.

        It is the key's own place in a mapping and the item's in a list. Where the path ends early, it is the place of the last part that exists; a model's key
        that was written under `defaults` is found there. Never raises.
        """
        return self._places.of_key(self._in_text(path))

    def is_inherited(self, path: Sequence[str | int]) -> bool:
        """True for a model's key that the model does not set itself and that was written under `defaults`."""
        return self._places.is_inherited(self._in_text(path))

    def _in_text(self, path: Sequence[str | int]) -> KeyPath:
        """The path with the number that its model has in the text."""
        if len(path) > 1 and path[0] == "models" and isinstance(path[1], int) and path[1] < len(self._numbers):
            return ("models", self._numbers[path[1]], *path[2:])
        return tuple(path)

    def repository_path(self) -> Path:
        """Where the model repository is to be written. Raises SpecError (TG016) where `~user` names no user."""
        return resolve_source(Source(path=self.spec.repository), self.folder, location=self.locate(("repository",)))

    def source_path(self, index: int, version: int | None = None) -> Path:
        """The file of the model with this index, or of one `version` of its `sources`; it may not exist.

        Raises SpecError (TG016, TG017) as `resolve_source` does.
        """
        model = self.spec.models[index]
        placed = next(placed for placed in model.placed if placed.version == version)
        return resolve_source(placed.source, self.folder, location=self.locate(("models", index, *placed.key)), model=model.name)


@dataclass(frozen=True)
class SpecReading:
    """What there is of a spec, right or wrong.

    Attributes:
        loaded: the models with which nothing is wrong; None where there is none, or where what is wrong concerns them all.
        problems: what is wrong, in the order of the text.
        absent: what is wrong with the files of models in `loaded`, where anything else is wrong with the spec.
    """

    loaded: LoadedSpec | None
    problems: tuple[Diagnostic, ...]
    absent: tuple[Diagnostic, ...] = ()


def load_spec(path: Path) -> LoadedSpec:
    """Reads and validates a spec file.

    Files that go into the repository as they are (labels, .npy samples) are looked for, and packages are located. Model files are for their reader to judge;
    but where the spec has faults, so that no reader is asked, those that cannot be opened are among the findings.

    Raises:
        SpecError: with every finding, in the order of the text; the codes are TG001 to TG017, and TG020 to TG023.
    """
    reading = read_spec(path)
    if reading.loaded is None or reading.problems:
        raise SpecError(_sorted([*reading.problems, *reading.absent]))
    return reading.loaded


def read_spec(path: Path) -> SpecReading:
    """`load_spec` as far as it goes: with the models that are right, beside all that is wrong with the others. Raises SpecError where there is no spec."""
    try:
        source = read_text(path)
    except InputError as error:
        raise SpecError(error.diagnostics) from error
    parsed = parse_yaml(source)
    root = parsed.root
    if root is None or root.entries is None:
        raise SpecError(parsed.problems or [_no_spec(source, root)])
    checked = Check(source, root, path.absolute().parent)
    checked.run()
    found = [*parsed.problems, *checked.findings]
    sound = None if parsed.problems else checked.sound()
    loaded = LoadedSpec(sound[0], path, checked.places, sound[1]) if sound else None
    if not found:
        return SpecReading(loaded, ())
    kept = sound[1] if sound else ()
    found += [finding for number, finding in checked.absent if number not in kept]
    return SpecReading(loaded, tuple(_sorted(found)), tuple(finding for number, finding in checked.absent if number in kept))


def _sorted(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """In the order of the text, each once."""
    return sorted(dict.fromkeys(findings), key=lambda finding: (_order(finding.location), finding.code))


def _order(location: Location | None) -> tuple[int, int]:
    return (location.line or 0, location.column or 0) if location else (0, 0)


def _no_spec(source: SourceText, root: Node | None) -> Diagnostic:
    """The finding for a text that holds no mapping."""
    example = "a spec starts with version: 1 and a list of models; tritongen init MODEL.onnx writes one"
    if root is None or (root.items is None and root.scalar is None):
        return Diagnostic("TG003", "the file is empty" if not source.text.strip() else "the file holds no values", source.location(0), hint=example)
    found = "a list" if root.items is not None else "a single value"
    hint = "put the list under models:, after version: 1" if root.items is not None else example
    return Diagnostic("TG003", f"a spec is a mapping of keys at the top, and this is {found}", source.location(root.start), hint=hint)
