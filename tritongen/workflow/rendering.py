"""`spec.yaml` → the plan for its model repository."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from tritongen import __version__
from tritongen.diagnostics import Diagnostic, Severity
from tritongen.errors import InputError, RepositoryError, SpecError
from tritongen.memory import ModelEstimate
from tritongen.proof import DEFAULT_LIMIT_BYTES
from tritongen.render import Findings, build_entry, compile_model
from tritongen.render.effects import idle_target
from tritongen.render.entry import SOURCE_NAME, digest_of
from tritongen.render.images import server_image
from tritongen.render.judging import judge_entry
from tritongen.render.recipes import plan_recipes
from tritongen.render.resources import judge_resources
from tritongen.render.rewriting import check_effects, check_optimisation
from tritongen.render.rows import judge_unproven
from tritongen.render.scripts import check_model_name, judge_trtexec, shared_files
from tritongen.render.server import judge_server
from tritongen.render.versions import check_foreign, check_interfaces
from tritongen.repository import Entry, FilePlan, Plan, make_plan, recover, root_to_write
from tritongen.spec import LoadedSpec, read_spec
from tritongen.workflow.deploying import Deploying, for_this_device, left_alone, repository_of
from tritongen.workflow.estimating import estimate_files, judge_memory
from tritongen.workflow.preparing import Prepared, prepare
from tritongen.workflow.proving import prove_files
from tritongen.workflow.releases import release_findings
from tritongen.workflow.shelf import Shelf, next_version, read_shelves
from tritongen.workflow.specified import findings_of, label_files, placed_at, release_of, samples_of
from tritongen.workflow.workspace import Workspace

_D = TypeVar("_D", bound="Draft")


@dataclass(frozen=True)
class Draft:
    """What a spec compiles to, right or wrong.

    Rewritten model files wait in a folder of their own until they are written; `close`, or leaving a `with` block, removes it (so does the last reference).

    Attributes:
        loaded: the spec as it was read.
        root: the repository's folder.
        entries: the folder of each model; without those of models whose files cannot be used.
        findings: all there is to say; with an error among it, nothing should be written.
    """

    loaded: LoadedSpec
    root: Path
    entries: tuple[Entry, ...]
    findings: tuple[Diagnostic, ...]
    workspace: Workspace = field(repr=False, compare=False)

    def close(self) -> None:
        """Remove what was only needed to write the folders."""
        self.workspace.close()

    def __enter__(self: _D) -> _D:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Rendering(Draft):
    """A draft that can be written, and what it would change on disk.

    Attributes:
        plan: the change of each model.
        refused: names of the models that are left as they are, since something is wrong with them; only with `keep_going`.
        deployment: the change of each file of a deployment, where one was asked for; it is not written without the models that stay as they are.
        notes: what a user should know about the way in which it was written; empty before.
    """

    plan: Plan
    refused: tuple[str, ...] = ()
    deployment: FilePlan | None = None
    notes: tuple[str, ...] = ()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All that would change."""
        return (self.plan,) if self.deployment is None else (self.plan, self.deployment)


def plan_render(
    spec_path: Path,
    *,
    output: Path | None = None,
    force: bool = False,
    prune: bool = False,
    keep_going: bool = False,
    settle: bool = False,
    prove_limit_bytes: int = DEFAULT_LIMIT_BYTES,
    cpu: bool = False,
    deploy: bool = False,
) -> Rendering:
    """Read a spec and its models, compile them and compare with the repository. Writes nothing.

    Args:
        spec_path: the spec file.
        output: the repository's folder; by default the one that the spec names.
        force: plan to overwrite what was edited by hand.
        prune: plan to remove models, and files of a deployment, that an earlier render made and that the spec asks for no more.
        keep_going: plan the models with which nothing is wrong, and leave the others as they are.
        settle: put right first what a killed render left, since this one will be applied.
        prove_limit_bytes: models above this size are not run in ONNX Runtime.
        cpu: write a repository for servers without a GPU, by default beside the other, with `.cpu` at its name's end.
        deploy: plan the files of a deployment too.

    Raises:
        InputError: with everything that is wrong in the spec and in all its models. With `keep_going`, where that concerns all models, or none is left.
        RepositoryError: where the repository cannot be read.
    """
    draft = draft_render(spec_path, output=output, settle=settle, prove_limit_bytes=prove_limit_bytes, cpu=cpu)
    try:
        files = Deploying(draft.loaded, output, cpu=cpu) if deploy else None
        findings = (*draft.findings, *(files.findings() if files else ()))
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        refused = {finding.model: None for finding in errors}
        entries = [entry for entry in draft.entries if entry.name not in refused]
        if errors and not (keep_going and entries and all(refused)):
            raise InputError([*findings, *_why_not_going_on(errors)] if keep_going else findings)
        release = draft.loaded.spec.triton.release_name
        image = server_image(draft.loaded.spec)
        shared = partial(shared_files, release=release, image=image, spec_name=draft.loaded.path.name, tritongen_version=__version__)
        plan = make_plan(draft.root, entries, shared=shared, force=force, prune=prune, spared=[*refused])
        if lost := [*_lost_sources(draft.loaded, plan, refused)]:
            raise InputError([*findings, *lost])
        stay = [*filter(None, refused), *(change.name for change in plan.conflicts if keep_going)]
        deployment = files.plan(force=force, prune=prune) if files and not stay else None
        if files:
            findings = (*findings, *([left_alone(files.folder, stay)] if stay else files.forgotten(plan)))
        return Rendering(draft.loaded, draft.root, draft.entries, findings, draft.workspace, plan, (*refused,), deployment)
    except BaseException:
        draft.close()
        raise


def _lost_sources(loaded: LoadedSpec, plan: Plan, refused: Collection[str]) -> Iterator[Diagnostic]:
    """An error (TG052) for each source that lies in the repository, and that the plan would take away."""
    for index, model in enumerate(loaded.spec.models):
        for placed in model.placed if model.name not in refused else ():
            path = loaded.source_path(index, placed.version)
            if plan.removes(path.resolve()):
                yield Diagnostic(
                    "TG052",
                    f"the source {path} lies in the repository, where it would be replaced or removed",
                    loaded.locate(("models", index, *placed.key)),
                    "the next render would not find it",
                    f"move it out of {plan.root}, and name it there",
                    model.name,
                )


def _why_not_going_on(errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Why `keep_going` wrote nothing."""
    about_all = sum(not finding.model for finding in errors)
    why = f"{about_all} of the mistakes above belong{'s' if about_all == 1 else ''} to no model that has a name" if about_all else "no model is left"
    return [Diagnostic("TG051", f"--keep-going cannot go on: {why}", consequence="nothing was written", severity=Severity.ADVICE)]


def draft_render(
    spec_path: Path, *, output: Path | None = None, settle: bool = False, prove_limit_bytes: int = DEFAULT_LIMIT_BYTES, cpu: bool = False
) -> Draft:
    """Read a spec and its models and compile them as far as that goes, whatever is wrong. Arguments as for `plan_render`.

    A model whose keys are wrong is left out; what is wrong is among the findings. Raises InputError where no model is left, or where what is wrong with the
    spec concerns them all.
    """
    reading = read_spec(spec_path)
    loaded = reading.loaded
    if loaded is None:
        raise SpecError(reading.problems)
    root = root_to_write(output if output is not None else repository_of(loaded, cpu=cpu))
    if settle:
        recover(root)
    as_read = loaded
    loaded, refused = for_this_device(as_read, cpu=cpu)
    found = [*reading.problems, *refused, *release_findings(loaded)]
    # What concerns GPUs alone is without effect on the CPU, and is meant so.
    is_whole = not reading.problems and not cpu
    if is_whole:
        found += idle_target(loaded.spec, loaded.locate)
    shelves = read_shelves(root, [model.name for model in loaded.spec.models])
    workspace = Workspace(root)
    entries: list[Entry] = []
    sizes: list[ModelEstimate] = []
    collectors = [findings_of(loaded, index) for index in range(len(loaded.spec.models))]
    try:
        for index, (model, shelf, findings) in enumerate(zip(loaded.spec.models, shelves, collectors, strict=True)):
            try:
                entry = _render_model(loaded, index, shelf, workspace, prove_limit_bytes, sizes, findings)
            except InputError as error:
                findings.found += [placed_at(diagnostic, model.name, loaded.locate(("models", index))) for diagnostic in error.diagnostics]
            else:
                entries += [entry] if entry is not None else []
    except BaseException:
        workspace.close()
        raise
    judge_resources(loaded.spec.models, collectors)
    found += judge_memory(loaded, sizes) if sizes else []
    found += judge_server(loaded.spec, release_of(loaded), loaded.locate, whole=is_whole)
    found += [finding for findings in collectors for finding in findings.found]
    return Draft(as_read, root, tuple(entries), tuple(found), workspace)


def _render_model(
    loaded: LoadedSpec, index: int, shelf: Shelf | RepositoryError, workspace: Workspace, prove_limit_bytes: int, sizes: list[ModelEstimate], findings: Findings
) -> Entry | None:
    """The model's folder; None where a file of it cannot be used, with the reason among the findings. `sizes` receives what it takes, where that is judged."""
    model = loaded.spec.models[index]
    check_model_name(model, findings)
    if isinstance(shelf, RepositoryError):
        raise shelf
    prepared = _prepare_all(loaded, index, shelf, workspace, prove_limit_bytes, findings)
    if prepared is None:
        return None
    if not model.sources:
        (file,) = prepared.values()
        version, previous = next_version(model, shelf, file.files)
        prepared = {version: file}
    else:
        previous = {}
        check_interfaces({version: (file.source, file.signature) for version, file in prepared.items()}, findings)
    check_optimisation(model, findings)
    if not findings.has_errors:
        check_effects(model, [file.recipe for file in prepared.values()], findings)
    newest = prepared[max(prepared)]
    kept = {int(path.parts[0]) for path in previous}
    check_foreign(model, sorted({*prepared, *kept}), shelf.foreign, shelf.beyond, findings)
    samples = samples_of(loaded, index, newest.signature, findings)
    compiled = compile_model(
        model,
        newest.signature,
        loaded.spec.triton,
        digest=digest_of([file.files for file in prepared.values()]),
        versions=sorted({*prepared, *kept}),
        samples=samples,
        stated=newest.stated,
        server=loaded.spec.server,
        findings=findings,
    )
    judge_unproven(model, compiled.batching, findings)
    proven = prove_files(model, compiled, prepared, samples, prove_limit_bytes, findings)
    recipes = plan_recipes(compiled, {version: file.files for version, file in prepared.items()}, loaded.spec.triton)
    judge_trtexec(recipes, findings)
    entry = build_entry(
        model,
        compiled,
        {version: file.files for version, file in prepared.items()},
        previous=previous,
        made={number: how for number, how in shelf.made.items() if number in kept}
        | {version: file.made for version, file in prepared.items() if file.made is not None},
        recipes=recipes,
        labels=label_files(loaded, model),
        spec_name=loaded.path.name,
        tritongen_version=__version__,
        basis=shelf.basis if model.version == "auto" and not model.sources else None,
    )
    if loaded.spec.triton.gpu_memory and not findings.has_errors:
        earlier = {int(path.parts[0]): (file.source, newest.signature) for path, file in previous.items() if path.name == SOURCE_NAME}
        files = {version: (file.path, file.signature) for version, file in prepared.items()}
        sizes += estimate_files(compiled, earlier | files, loaded.spec.triton.release_name)
    if not findings.has_errors:
        judge_entry(entry, model, proven, release=release_of(loaded), findings=findings)
    return entry


def _prepare_all(loaded: LoadedSpec, index: int, shelf: Shelf, workspace: Workspace, prove_limit_bytes: int, findings: Findings) -> dict[int, Prepared] | None:
    """Every file of a model by version (0 where `version` decides), or None with all that is wrong with them among the findings."""
    model = loaded.spec.models[index]
    prepared: dict[int, Prepared] = {}
    for placed in model.placed:
        try:
            prepared[placed.version or 0] = prepare(
                model,
                placed,
                loaded.source_path(index, placed.version),
                release=release_of(loaded),
                # Those that do not fit are reported when the model is compiled.
                samples=lambda signature: samples_of(loaded, index, signature, dataclasses.replace(findings, found=[])),
                shelf=shelf,
                workspace=workspace,
                limit_bytes=prove_limit_bytes,
                findings=findings.saying(f"version {placed.version}: ") if placed.version else findings,
            )
        except InputError as error:
            where = loaded.locate(("models", index, *placed.key))
            findings.found += [placed_at(diagnostic, model.name, where) for diagnostic in error.diagnostics]
    return prepared if len(prepared) == len(model.placed) else None
