"""`spec.yaml` → `LoadedSpec`, or every finding at once.

The text is read into a tree with positions, the plain data is validated by the models, and every error is looked up in the tree. Findings made here: TG003 the
file is no spec, TG007 its version, TG009 a key without a value, TG014 two models of one name; the rest comes from `tritongen.sources`, `findings` and `paths`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError, ModelFileError, SpecError
from tritongen.signature.modelfile import opened
from tritongen.sources import Found, Node, SourceText, parse_yaml, read_text
from tritongen.spec.findings import Wording, key_name, word
from tritongen.spec.models import SPEC_VERSION, Source, Spec, same_name_problem, same_names
from tritongen.spec.paths import check_inside, resolve_source
from tritongen.spec.source import SourceField
from tritongen.spec.values import CONTROL_CHARACTERS

KeyPath = tuple[str | int, ...]
_SOURCE: TypeAdapter[Source] = TypeAdapter(SourceField)


@dataclass(frozen=True)
class LoadedSpec:
    """A spec and where each of its values stands.

    Attributes:
        spec: the validated values; every model already holds what `defaults` gave it.
        path: the spec file, as it was given.
    """

    spec: Spec
    path: Path
    _places: _Places = field(repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """The absolute folder of the spec, to which its paths are relative. A linked spec file counts where the link is."""
        return self.path.absolute().parent

    def locate(self, path: Sequence[str | int]) -> Location:
        """The place of a key such as `("models", 0, "batching", "max")`.

        It is the key's own place in a mapping and the item's in a list. Where the path ends early, it is the place of the last part that exists; a model's key
        that was written under `defaults` is found there. Never raises.
        """
        return self._places.of_key(tuple(path))

    def is_inherited(self, path: Sequence[str | int]) -> bool:
        """True for a model's key that the model does not set itself and that was written under `defaults`."""
        return self._places.is_inherited(tuple(path))

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


def load_spec(path: Path) -> LoadedSpec:
    """Reads and validates a spec file.

    Files that go into the repository as they are (labels, .npy samples) are looked for, and packages are located. Model files are for their reader to judge;
    but where the spec has faults, so that no reader is asked, those that cannot be opened are among the findings.

    Raises:
        SpecError: with every finding, in the order of the text; the codes are TG001 to TG017, and TG020 to TG023.
    """
    try:
        source = read_text(path)
    except InputError as error:
        raise SpecError(error.diagnostics) from error
    parsed = parse_yaml(source)
    root = parsed.root
    if root is None or root.entries is None:
        raise SpecError(parsed.problems or [_no_spec(source, root)])
    checked = _Check(source, root, path.absolute().parent)
    checked.run()
    if findings := [*parsed.problems, *checked.findings]:
        findings += checked.absent
        raise SpecError(sorted(dict.fromkeys(findings), key=lambda finding: (_order(finding.location), finding.code)))
    assert checked.spec is not None
    return LoadedSpec(checked.spec, path, checked.places)


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


@dataclass(frozen=True)
class _Places:
    """Key paths → locations in one text."""

    source: SourceText
    root: Node

    def find(self, path: KeyPath) -> Found:
        """The node of a path, looked for under `defaults` where the model does not set the key itself."""
        found = self.root.find(path)
        if found.depth == 2 and len(path) > 2 and path[0] == "models":
            inherited = self.root.find(("defaults", *path[2:]))
            if inherited.depth >= 2:
                return inherited
        return found

    def is_inherited(self, path: KeyPath) -> bool:
        """True for a model's key that was written under `defaults`."""
        return len(path) > 2 and path[0] == "models" and self.root.find(path).depth == 2 and self.root.find(("defaults", path[2])).depth == 2

    def is_faulty(self, path: KeyPath) -> bool:
        """True where the value itself was found faulty already, or is part of one that was: nobody knows what an unknown tag makes of what it stands before."""
        parts = (self.find(path[:length]) for length in range(1, len(path) + 1))
        return self.root.faulty or any(found.node.faulty for length, found in enumerate(parts, 1) if found.depth == length)

    def of_key(self, path: KeyPath) -> Location:
        return self.source.location(self.find(path).key_start)

    def of_value(self, path: KeyPath) -> Location:
        found = self.find(path)
        return self.source.location(found.node.start if found.depth == len(path) else found.key_start)


class _Check:
    """One validation of one tree: fills `findings`, and `spec` where there are none; `absent` are model files that cannot be opened."""

    def __init__(self, source: SourceText, root: Node, folder: Path) -> None:
        self.places = _Places(source, root)
        self.data: dict[str, Any] = root.plain()
        self.folder = folder
        self.findings: list[Diagnostic] = []
        self.absent: list[Diagnostic] = []
        self.spec: Spec | None = None
        self._empty: set[KeyPath] = set()

    def run(self) -> None:
        """Everything that can be said about the data; a spec of a newer version is not judged any further."""
        if not self._version():
            return
        self._remove_empty(self.data, ())
        try:
            self.spec = Spec.model_validate(self.data)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            in_defaults = {(tuple(detail["loc"])[1:], word(detail).message) for detail in errors if detail["loc"][:1] == ("defaults",)}
            for detail in errors:
                path, wording = tuple(detail["loc"]), word(detail)
                if self.places.is_inherited(path) and (path[2:], wording.message) in in_defaults:
                    continue  # said once, for the defaults
                if detail["type"] == "too_short" and detail["input"]:
                    continue  # pydantic counts only the items that were fine, and the others are reported
                self._pydantic(path, wording)
        self._names()
        for index, model in enumerate(self._models()):
            self._files(index, model)

    def _models(self) -> list[Any]:
        models = self.data.get("models")
        return models if isinstance(models, list) else []

    def _add(self, path: KeyPath, wording: Wording, location: Location) -> None:
        self.findings.append(self._finding(path, wording, location))

    def _finding(self, path: KeyPath, wording: Wording, location: Location) -> Diagnostic:
        """A finding, with the model's name in front of the key where the place alone does not tell which model is meant."""
        name = self._model_name(path)
        key = key_name(path[:-1] if wording.at_key else path)
        own = str(path[-1])
        named = not key or wording.message.startswith((f"{own}:", f"{own} "))  # the sentence names its key itself
        message = wording.message if named else f"{key}: {wording.message}"
        if name and self.places.is_inherited(path):
            message = f"model {name!r}: {message}"
        return Diagnostic(wording.code, message, location, consequence=wording.consequence, hint=wording.hint, model=name)

    def _model_name(self, path: KeyPath) -> str:
        if len(path) > 1 and path[0] == "models" and isinstance(path[1], int):
            model = self._models()[path[1]]
            name = model.get("name") if isinstance(model, dict) else None
            return name if isinstance(name, str) else ""
        return ""

    def _pydantic(self, path: KeyPath, wording: Wording) -> None:
        if wording.code == "TG014" or path in self._empty or self.places.is_faulty(path):
            return  # said elsewhere
        self._add(path, wording, self.places.of_key(path) if wording.at_key else self.places.of_value(path))

    def _version(self) -> bool:
        """Checks `version` and puts the current one in its place, so that the rest can be judged. False for a spec that is newer than this tritongen."""
        version, path = self.data.get("version"), ("version",)
        self.data["version"] = SPEC_VERSION
        if type(version) is int and version == SPEC_VERSION:
            return True
        found = self.places.root.find(path)
        if found.node.faulty and found.depth:
            return True
        place = self.places.of_value(path)
        if found.depth == 0:
            wording = Wording(
                "TG007", "the spec does not say which version of the format it uses", f"add version: {SPEC_VERSION} as the first line", at_key=True
            )
        elif type(version) is int and version > SPEC_VERSION:
            message = f"the spec is of version {version}, and this tritongen reads version {SPEC_VERSION}"
            wording = Wording("TG007", message, "upgrade: pip install --upgrade tritongen", at_key=True)
        else:
            shown = f"the text {version!r}" if isinstance(version, str) else str(version).lower()
            wording = Wording("TG007", f"the version of a spec is the number {SPEC_VERSION}, not {shown[:60]}", f"write version: {SPEC_VERSION}", at_key=True)
        self._add(path, wording, place)
        return not (type(version) is int and version > SPEC_VERSION)

    def _remove_empty(self, value: Any, path: KeyPath) -> None:
        """Reports keys without a value and takes them out; an overlay under `config` may hold null."""
        if len(path) == 3 and path[0] == "models" and path[2] == "config":
            return
        if isinstance(value, list):
            for index, item in enumerate(value):
                self._remove_empty(item, (*path, index))
        elif isinstance(value, dict):
            for key in [key for key, item in value.items() if item is None]:
                here = (*path, key)
                del value[key]
                self._empty.add(here)
                if not self.places.find(here).node.faulty:
                    self._add(here, Wording("TG009", "the key has no value", "give it one, or remove the key"), self.places.of_key(here))
            for key, item in value.items():
                self._remove_empty(item, (*path, key))

    def _names(self) -> None:
        names = [model.get("name") if isinstance(model, dict) else None for model in self._models()]
        for first, second in same_names(names):
            other, path = self.places.of_value(("models", first, "name")), ("models", second, "name")
            problem = same_name_problem(str(names[first]), str(names[second]), where=f", at {other}")
            context = problem.context or {}
            self._add(path, Wording("TG014", context["message"], context["hint"], context["consequence"]), self.places.of_value(path))

    def _files(self, index: int, model: object) -> None:
        """Packages that must be installed, and files that must lie inside the spec's folder; looks at the raw data, which also a faulty spec has."""
        if not isinstance(model, dict):
            return
        for key, name, text in _copied_files(model):
            here: KeyPath = ("models", index, key, name)
            if not self.places.is_faulty(here) and (fault := check_inside(text, self.folder)):
                self._add(here, Wording("TG016", *fault), self.places.of_value(here))
        for place, source in _model_files(model):
            self._model_file(("models", index, *place), source)

    def _model_file(self, here: KeyPath, source: object) -> None:
        if self.places.is_faulty(here):
            return
        try:
            path = resolve_source(_SOURCE.validate_python(source), self.folder)
            with opened(path):
                return
        except ValidationError:
            return  # said already, by the validation of the whole
        except SpecError as error:
            self.findings += [self._source(here, finding, finding.message) for finding in error.diagnostics]
        except ModelFileError as error:
            self.absent += [self._source(here, finding, f"{finding.location}: {finding.message}") for finding in error.diagnostics]

    def _source(self, here: KeyPath, finding: Diagnostic, message: str) -> Diagnostic:
        """What is wrong with a model's file, at the place in the spec that names it."""
        return self._finding(here, Wording(finding.code, message, finding.hint, finding.consequence), self.places.of_value(here))


def _model_files(model: Mapping[str, Any]) -> Iterator[tuple[KeyPath, object]]:
    """(key, what it says) of the ONNX files of a model."""
    if "source" in model:
        yield ("source",), model["source"]
    sources = model.get("sources")
    for number, source in sources.items() if isinstance(sources, dict) else ():
        yield ("sources", number), source


def _copied_files(model: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key, tensor, path) of the files of a model that go into the repository as they are."""
    for key, is_file in (("labels", lambda text: True), ("samples", lambda text: text.endswith(".npy"))):
        entries = model.get(key)
        for name, text in entries.items() if isinstance(entries, dict) else ():
            if isinstance(text, str) and text.strip() and not CONTROL_CHARACTERS.search(text) and is_file(text):
                yield key, name, text
