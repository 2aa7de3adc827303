"""Renders that are killed, at every step and at any moment: what they leave, and what the next one makes of it.

As a program it runs campaigns in processes of its own, since it forks, and prints what was wrong and how many were killed as JSON:
`python crashes.py FOLDER steps:9 steps:9:noexchange:4 steps:1:old moments:500 calls:fsync`; the last number is that of the first step, less one, and a name is
that of the spec that is rendered after each kill: each of the three in turn, where there is none. With `deploy`, a deployment is rendered too. `calls` needs
strace.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import networks
import onnx

import tritongen.repository.placing
from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import Target, TargetKind
from tritongen.cli.main import run
from tritongen.diagnostics import Severity
from tritongen.workflow.rendering import Rendering, plan_render
from tritongen.workflow.writing import apply_rendering

Tree = dict[str, bytes]
State = dict[str, tuple[int, bytes | None]]

_STEPS = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.utime", "os.setxattr"}
_STEPS |= {"fcntl.flock", "fcntl.ioctl", "ctypes.dlsym"}
"""Python's audit events for what changes a disk; `open` for writing is another. `ctypes.dlsym` comes before renameat2 and syncfs."""

CALLS = dict.fromkeys(
    ("mkdir", "rename", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "chmod", "fchmod", "utimensat", "syncfs", "fsync", "flock", "write"), ""
) | {"openat": "O_CREAT", "ioctl": "FICLONE"}
"""System calls that change a disk, and what those that do not always do it have among their arguments when they do."""

_MODELS = """\
version: 1
deploy: {{folder: deployment}}
defaults: {{prove: false}}
models:
  - {{name: weights, source: {weights}.onnx}}
  - {{name: config, source: old.onnx, batching: {{max: {most}}}}}
  - {{name: counted, source: {weights}.onnx, version: auto, versions: {{count: 2}}}}
  - {{name: same, source: old.onnx}}
  - {{name: split, source: split/{weights}.onnx}}
  - {{name: plan, source: old.onnx, backend: tensorrt, batching: {{max: {most}}}, instances: [{{kind: gpu}}]}}
  - {{name: {name}, source: old.onnx, backend: tensorrt, instances: [{{kind: gpu}}]{more}}}
"""

_NOT_ON_A_CPU = ", config: {optimization: {cuda: {graphs: false}}}"
"""What leaves a deployment without its form for the CPU, so that a file of it goes."""

_OTHER = """\
version: 1
deploy: {folder: deployment}
server: {metrics: {enabled: false}}
defaults: {prove: false}
models: [{name: weights, source: old.onnx, batching: {max: 2}}]
"""

SPECS = ("new", "old", "other")
"""What may be rendered after a kill: the same again, what was there before, and what has next to nothing of either."""


def tree(folder: Path) -> Tree:
    """Every file below a folder by its path; empty where there is none."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def by_model(folder: Path) -> dict[str, Tree]:
    """The same for each folder in it."""
    return {path.name: tree(path) for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def state(folder: Path) -> State:
    """Permissions and content of everything below a folder by its path, folders with no content; empty where there is none."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    return {name: (stat.S_IMODE(path.stat().st_mode), path.read_bytes() if path.is_file() else None) for name, path in found.items()}


def states(folder: Path) -> dict[str, State]:
    """The same for each folder in it, with its own permissions under its name."""
    models = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: {".": (stat.S_IMODE(path.stat().st_mode), None), **state(path)} for path in models}


class Scenario:
    """Two specs, `old.yaml` and `new.yaml`, of which the second changes weights, configs, versions and names of the first; and the repository of each.

    `other.yaml` has only the model that somebody's own file lies in, otherwise than both. Each is rendered as `spec.yaml`: the deployment of a spec of another
    name would be somebody else's. `deploy`: whether there is one.
    """

    def __init__(self, folder: Path, *, deploy: bool = False) -> None:
        self.folder = folder
        self.deploy = deploy
        self.spec = folder / "spec.yaml"
        self.root = folder / "repository"
        self.artifacts = folder / "repository.artifacts"
        self.deployment = folder / "deployment"
        for name, seed in (("old", 1), ("new", 2)):
            model = onnx.load(networks.mlp(folder / f"{name}.onnx", seed=seed))
            (folder / "split").mkdir(exist_ok=True)
            onnx.save(model, folder / f"split/{name}.onnx", save_as_external_data=True, location=f"{name}.bin", size_threshold=0)
            most, more = (4, "") if name == "old" else (8, _NOT_ON_A_CPU)
            text = _MODELS.format(weights=name, most=most, name=f"only_{name}", more=more)
            (folder / f"{name}.yaml").write_text(text)
        (folder / "other.yaml").write_text(_OTHER)
        self.render("old")
        (self.root / "plan/1/model.plan").write_bytes(b"ftrt" + bytes(range(256)))
        (self.root / "weights/notes.txt").write_text("somebody's own")
        (self.root / "weights/empty/theirs").mkdir(parents=True)
        (self.root / "weights/empty").chmod(0o711)
        for path in self.root.rglob("*"):
            os.utime(path, (time.time() + 86_400,) * 2)  # as by a machine whose clock was ahead: what is new must be given a time
        for path in self._written():
            if path.exists():
                shutil.copytree(path, folder / "kept" / path.name)
        self.old = states(self.root)
        self.old_artifacts, self.old_deployment = state(self.artifacts), state(self.deployment)
        self.beside = {path.name for path in folder.iterdir()}
        self.render("other")
        self.other, self.other_deployment = states(self.root), state(self.deployment)
        self.reset()
        self.render("new")
        self.new = states(self.root)
        self.new_artifacts, self.new_deployment = state(self.artifacts), state(self.deployment)
        found = [finding for name in ("old", "new") for finding in self.check(name)]
        assert found == [], found

    def _written(self) -> tuple[Path, ...]:
        """The folders that a render writes."""
        return (self.root, self.artifacts, self.deployment)

    def take(self, name: str) -> None:
        """Make the spec of that name the one that is rendered."""
        shutil.copyfile(self.folder / f"{name}.yaml", self.spec)

    def render(self, name: str) -> None:
        """What `tritongen render` does with the spec of that name."""
        self.take(name)
        self.render_taken()

    def render_taken(self) -> None:
        """The same with the spec that was taken, without its words."""
        options = ["--prune", *(["--deploy", "compose"] if self.deploy else [])]
        with Quiet():
            code = run(["render", str(self.spec), "-o", str(self.root), *options])
        assert code == 0, f"render ended with {code}"

    def check(self, name: str) -> list[str]:
        """Errors of a repository, but for the plan that is built elsewhere."""
        path = self.folder / "kept/repository" if name == "old" else self.root
        found = [finding.diagnostic for finding in check([Target(TargetKind.REPOSITORY, path)], CheckOptions())]
        return [str(finding) for finding in found if finding.severity is Severity.ERROR and finding.code not in ("TG225", "TG351")]

    def reset(self) -> None:
        """The old repository again."""
        for path in self._written():
            shutil.rmtree(path, ignore_errors=True)
            if (self.folder / "kept" / path.name).exists():
                shutil.copytree(self.folder / "kept" / path.name, path)

    def faults(self, *, may_lack: bool = False) -> Iterator[str]:
        """What is wrong with what a killed render left: every model and every other file is the old one or the new one, whole, and nothing else is there.

        `may_lack`: a model that both have may be missing, where folders cannot be exchanged.
        """
        found = states(self.root)
        for name, files in found.items():
            if files not in (self.old.get(name), self.new.get(name)):
                yield f"{name} is neither old nor new"
        for name in self.old.keys() & self.new.keys():
            if name not in found and not may_lack:
                yield f"{name} is missing"
        yield from _faults_among("the artifacts", state(self.artifacts), self.old_artifacts, self.new_artifacts)
        left = re.compile(r"\.docker-compose\.yml\.tritongen-[0-9a-f]{16}(/|$)")
        deployment = {path: content for path, content in state(self.deployment).items() if not left.match(path)}
        yield from _faults_among("the deployment's files", deployment, self.old_deployment, self.new_deployment)
        for path in self.folder.iterdir():
            if path.name not in self.beside and not re.fullmatch(r"\.repository\.tritongen-[0-9a-f]{16}", path.name):
                yield f"{path.name} lies beside the repository"

    def faults_of_next(self, name: str = "new") -> Iterator[str]:
        """What is wrong after the next render, of the spec of that name, which must finish, and leave nothing of the killed one."""
        try:
            self.render(name)
        except AssertionError as error:
            yield str(error)
        models, artifacts, deployment = {
            "new": (self.new, self.new_artifacts, self.new_deployment),
            "old": (self.old, self.old_artifacts, self.old_deployment),
            "other": (self.other, {}, self.other_deployment),
        }[name]
        found = states(self.root)
        if name == "old":  # a number that was given to new weights is not given again
            models, found = ({model: files for model, files in each.items() if model != "counted"} for each in (models, found))
        if found != models:
            yield f"the next render did not make the {name} repository"
        if state(self.artifacts) != artifacts:
            yield f"the next render did not make the {name} artifacts"
        if state(self.deployment) != deployment:
            yield f"the next render did not make the {name} deployment"
        if beside := {path.name for path in self.folder.iterdir()} - self.beside:
            yield f"left behind: {sorted(beside)}"


def _faults_among(what: str, found: State, old: State, new: State) -> Iterator[str]:
    """What is wrong with files each of which is to be the old one or the new one."""
    for path, content in found.items():
        if content not in (old.get(path), new.get(path)):
            yield f"{path} among {what} is neither old nor new"
    for path in (old.keys() & new.keys()) - found.keys():
        yield f"{path} among {what} is missing"


class Quiet:
    """Sends what is printed nowhere, for as long as a block lasts."""

    def __enter__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        self._nowhere = open(os.devnull, "w")  # noqa: PTH123 - closed below
        sys.stdout = sys.stderr = self._nowhere

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._streams
        self._nowhere.close()


def forked(work: Callable[[], None]) -> int:
    """A child that does some work and ends with 0; its process id."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - a child must not return into what its parent does
            import traceback

            traceback.print_exc()
            os._exit(1)
    return child


def killed_at_step(rendering: Rendering, number: int, *, exchanges: bool) -> bool:
    """Write a rendering in a child that dies just before the step with this number; False where it has no such step."""

    def work() -> None:
        if not exchanges:
            tritongen.repository.placing.exchange = lambda *_: False
        left = [number]

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in _STEPS or writes:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        apply_rendering(rendering)

    _, status = os.waitpid(forked(work), 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the render failed by itself"
    return os.WIFSIGNALED(status)


def killed_at_moment(scenario: Scenario, delay_s: float) -> bool:
    """Run the whole command in a child and kill it after some seconds; False where it had ended."""
    scenario.take("new")
    child = forked(scenario.render_taken)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the render failed by itself"
    return os.WIFSIGNALED(status)


def at_steps(scenario: Scenario, stride: int, *, exchanges: bool, skip: int = 0, specs: Sequence[str] = SPECS) -> tuple[list[str], int]:
    """Kill a render before every `stride`-th step, after `skip` ones: what was wrong afterwards, and how many were killed.

    `specs`: what is rendered afterwards, one by turns.
    """
    faults: list[str] = []
    scenario.reset()
    scenario.take("new")
    with plan_render(scenario.spec, output=scenario.root, prune=True, deploy=scenario.deploy) as rendering:
        pass
    for killed in itertools.count():
        scenario.reset()
        number = 1 + skip + killed * stride
        hit = killed_at_step(rendering, number, exchanges=exchanges)
        after = specs[killed % len(specs)]
        faults += [f"step {number}, then {after}: {fault}" for fault in (*scenario.faults(may_lack=not exchanges), *scenario.faults_of_next(after))]
        if not hit:
            return faults, killed
    raise AssertionError


def at_moments(scenario: Scenario, count: int) -> tuple[list[str], int]:
    """Kill the whole command at random moments of its run, until `count` were killed: what was wrong afterwards, and how many that were."""
    faults: list[str] = []
    chance = random.Random(count)
    scenario.reset()
    started = time.perf_counter()
    scenario.render("new")
    whole_s = time.perf_counter() - started
    killed = 0
    for number in range(10 * count):
        if killed == count:
            break
        scenario.reset()
        killed += killed_at_moment(scenario, chance.uniform(0, whole_s))
        after = SPECS[number % len(SPECS)]
        faults += [f"moment {number}, then {after}: {fault}" for fault in (*scenario.faults(), *scenario.faults_of_next(after))]
    return faults, killed


def traced(scenario: Scenario, *options: str) -> tuple[bool, list[str]]:
    """Run the whole command in a child that strace looks at from its first call on: whether it was killed, and what strace wrote of its main thread."""
    log = scenario.folder / "trace"

    def work() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        scenario.render_taken()

    scenario.take("new")
    child = forked(work)
    os.waitpid(child, os.WUNTRACED)
    with subprocess.Popen(["strace", "-p", str(child), "-o", str(log), *options], stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        said = strace.stderr.readline()
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, 0)
        assert "attached" in said, said
    lines = log.read_text(errors="replace").splitlines()
    log.unlink()
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the render failed by itself"
    return os.WIFSIGNALED(status), lines


def at_calls(scenario: Scenario, call: str) -> tuple[list[str], int]:
    """Kill the whole command before each system call of this name: what was wrong afterwards, and how many were killed."""
    faults: list[str] = []
    scenario.reset()
    _, lines = traced(scenario, "-e", f"trace={call}")
    made = [line for line in lines if line.startswith(f"{call}(")]
    wanted = [number for number, line in enumerate(made, 1) if CALLS[call] in line]
    for number in wanted:
        scenario.reset()
        hit, _ = traced(scenario, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
        assert hit, f"{call} {number} was not reached"
        after = SPECS[number % len(SPECS)]
        faults += [f"{call} {number}, then {after}: {fault}" for fault in (*scenario.faults(), *scenario.faults_of_next(after))]
    return faults, len(wanted)


def campaign(scenario: Scenario, kind: str, what: str, *more: str) -> tuple[list[str], int]:
    """One of those that are named on the command line."""
    if kind == "calls":
        return at_calls(scenario, what)
    if kind == "moments":
        return at_moments(scenario, int(what))
    skip = next((int(each) for each in more if each.isdigit()), 0)
    specs = [each for each in more if each in SPECS] or SPECS
    return at_steps(scenario, int(what), exchanges="noexchange" not in more, skip=skip, specs=specs)


def main() -> None:
    scenarios: dict[bool, Scenario] = {}
    found = {}
    for name in sys.argv[2:]:
        deploy = "deploy" in name.split(":")
        if deploy not in scenarios:
            scenarios[deploy] = Scenario(Path(tempfile.mkdtemp(dir=sys.argv[1])), deploy=deploy)
        found[name] = campaign(scenarios[deploy], *name.split(":"))
    print(json.dumps({name: {"faults": faults, "killed": killed} for name, (faults, killed) in found.items()}))


if __name__ == "__main__":
    main()
