"""The data of a spec → its values, or everything that is wrong with it, each at its place.

Every error of the models is looked up in the tree. Findings made here: TG007 its version, TG009 a key without a value, TG014 two models of one name; the rest
comes from `findings` and `paths`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import ModelFileError, SpecError
from tritongen.signature.modelfile import opened
from tritongen.sources import Node, SourceText
from tritongen.spec.findings import Wording, key_name, word
from tritongen.spec.models import SPEC_VERSION, Source, Spec, same_name_problem, same_names, with_defaults
from tritongen.spec.paths import check_inside, resolve_source
from tritongen.spec.places import KeyPath, Places
from tritongen.spec.source import SourceField
from tritongen.spec.values import CONTROL_CHARACTERS

_SOURCE: TypeAdapter[Source] = TypeAdapter(SourceField)


class Check:
    """One validation of one tree.

    Attributes:
        findings: all that is wrong with the text.
        absent: by the number of the model, what is wrong with model files that cannot be opened.
        spec: the values, where nothing is wrong.
    """

    def __init__(self, source: SourceText, root: Node, folder: Path) -> None:
        self.places = Places(source, root)
        self.data: dict[str, Any] = root.plain()
        self.folder = folder
        self.findings: list[Diagnostic] = []
        self.absent: list[tuple[int, Diagnostic]] = []
        self.spec: Spec | None = None
        self._empty: set[KeyPath] = set()
        self._faulty: set[int | str] = set()

    def run(self) -> None:
        """Everything that can be said about the data; a spec of a newer version is not judged any further."""
        if not self._version():
            self._mark(())
            return
        self._remove_empty(self.data, ())
        try:
            self.spec = Spec.model_validate(self.data)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            in_defaults = {(tuple(detail["loc"])[1:], word(detail).message) for detail in errors if detail["loc"][:1] == ("defaults",)}
            for detail in errors:
                path, wording = tuple(detail["loc"]), word(detail)
                if wording.code == "TG014":
                    continue  # `_names` says it, of the second of the two
                self._mark(path)
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

    def sound(self) -> tuple[Spec, tuple[int, ...]] | None:
        """The spec without the models that have a fault, and the numbers of those that are left; None where none is, or a fault concerns them all."""
        if self.spec is not None:
            return self.spec, tuple(range(len(self.spec.models)))
        if any(isinstance(part, str) for part in self._faulty - {"version", "defaults", "load"}):
            return None
        models = {number: model for number, model in enumerate(with_defaults(self.data)["models"]) if number not in self._faulty}
        if not models:
            return None
        # Load tests are about all models, and nothing that is rendered depends on them.
        kept = {key: value for key, value in self.data.items() if key not in ("defaults", "models", "load")}
        return Spec.model_validate({**kept, "models": list(models.values())}), tuple(models)

    def _mark(self, path: KeyPath) -> None:
        """Note which model a fault belongs to, or which key beside the models."""
        self._faulty.add(path[1] if path[:1] == ("models",) and len(path) > 1 else path[0] if path else "")

    def _add(self, path: KeyPath, wording: Wording, location: Location) -> None:
        self._mark(path)
        self.findings.append(self._finding(path, wording, location))

    def _finding(self, path: KeyPath, wording: Wording, location: Location) -> Diagnostic:
        """A finding, with the model's name in front of the key where the place alone does not tell which model is meant."""
        name = self._model_name(path)
        key = key_name(path[:-1] if wording.at_key else path)
        own = str(path[-1])
        named = not key or wording.message.startswith((f"{own}:", f"{own} "))  # the sentence names its key itself
        message = wording.message if named else f"{key}: {wording.message}"
        if wording.beside and (other := self.places.beside(path, wording.beside)):
            message += f"; {other[0]} is at {other[1]}"
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
        if path in self._empty or self.places.is_faulty(path):
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
        for key, text, may_be_folder in _copied_files(model):
            here: KeyPath = ("models", index, *key)
            if not self.places.is_faulty(here) and (fault := check_inside(text, self.folder, may_be_folder=may_be_folder)):
                self._add(here, Wording("TG016", *fault), self.places.of_value(here))
        for place, source in _model_files(model):
            self._model_file(index, place, source)

    def _model_file(self, number: int, place: KeyPath, source: object) -> None:
        here: KeyPath = ("models", number, *place)
        if self.places.is_faulty(here):
            return
        try:
            path = resolve_source(_SOURCE.validate_python(source), self.folder)
            with opened(path):
                return
        except ValidationError:
            return  # said already, by the validation of the whole
        except SpecError as error:
            self._mark(here)
            self.findings += [self._source(here, finding, finding.message) for finding in error.diagnostics]
        except ModelFileError as error:
            found = (self._source(here, finding, f"{finding.location}: {finding.message}") for finding in error.diagnostics)
            self.absent += [(number, finding) for finding in found]

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


def _copied_files(model: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, bool]]:
    """(key, path, whether it may be a folder) of what goes from files of a model into the repository."""
    for key, is_file in (("labels", lambda text: True), ("samples", lambda text: text.endswith(".npy"))):
        entries = model.get(key)
        for name, value in entries.items() if isinstance(entries, dict) else ():
            in_files = key == "samples" and isinstance(value, dict)
            text = value.get("files") if in_files else value
            if isinstance(text, str) and text.strip() and not CONTROL_CHARACTERS.search(text) and (in_files or is_file(text)):
                yield ((key, name, "files") if in_files else (key, name)), text, in_files
