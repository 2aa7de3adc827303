"""`cpu_threads`, `triton.cpus` and the copies of an ONNX model → how many threads each copy gets on the CPU.

A session has a pool of threads for the inside of an operator and, with execution_mode: parallel, another one for operators side by side. The thread that
brings the request works in the first, so that a copy has one thread less than both numbers together (counted in a process with ONNX Runtime).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritongen.render.findings import Findings, Key
from tritongen.render.placement import placed_groups
from tritongen.spec import ModelSpec
from tritongen.spec.target import Target

_INTRA, _INTER = "intra_op_thread_count", "inter_op_thread_count"
_KEYS = {_INTRA: "cpu_threads", _INTER: "inter_op_threads"}
_PLACES: dict[str, Key] = {_INTRA: ("cpu_threads",), _INTER: ("onnxruntime", "inter_op_threads")}


@dataclass(frozen=True)
class Pools:
    """The threads of one copy: inside an operator, and for operators side by side (1 where they run one after another)."""

    intra: int
    inter: int = 1

    @property
    def threads(self) -> int:
        """All of them; the one that brings the request is part of both."""
        return self.intra + self.inter - 1

    @classmethod
    def within(cls, cores: int, *, parallel: bool, intra: int | None = None, inter: int | None = None) -> Pools:
        """Pools that take so many cores, or what one that is given leaves of them; a pool has at least one thread, whatever is left."""
        if intra is None and inter is None and parallel:
            # One thread for operators would run them one after another.
            inter = max(min(2, cores), (cores + 1) // 2)
        if inter is None:
            inter = max(1, cores + 1 - intra) if parallel and intra is not None else 1
        return cls(max(1, cores + 1 - inter) if intra is None else intra, inter)


def cpu_copies(model: ModelSpec) -> int:
    """How many copies of an ONNX model can run at once on a CPU; those of kind auto do so where there is no GPU."""
    return sum(group.copies for group in placed_groups(model) if group.kind != "gpu")


def add_threads(config: Any, model: ModelSpec, target: Target, findings: Findings) -> tuple[str, ...]:
    """Write how many threads each copy of an ONNX model has; the sentences are for the header of the config.

    What the spec states wins. A single copy that runs one operator after another is left to ONNX Runtime, which takes all cores: several of them, or both
    pools of one, would each start as many threads as there are cores. Call it last: an overlay may have set the threads.
    """
    if model.backend != "onnxruntime":
        return ()
    if model.cpu_threads is not None:
        config.parameters[_INTRA].string_value = str(model.cpu_threads)
    copies, parallel = cpu_copies(model), _stated(config, "execution_mode") == 1
    missing = [name for name in ((_INTRA, _INTER) if parallel else (_INTRA,)) if name not in config.parameters]
    if not copies:
        return ()
    if not missing or (copies < 2 and not parallel):
        _judge(config, model, copies, target, findings, parallel=parallel)
        return ()
    if target.cpus is None:
        return _assume_one(config, missing, copies, findings)
    pools = Pools.within(max(1, target.cpus // copies), parallel=parallel, intra=_stated(config, _INTRA), inter=_stated(config, _INTER))
    for name, threads in ((_INTRA, pools.intra), (_INTER, pools.inter)):
        if name in missing:
            config.parameters[name].string_value = str(threads)
    _judge(config, model, copies, target, findings, parallel=parallel)
    shares = " and ".join(_described(name, threads, parallel) for name, threads in ((_INTRA, pools.intra), (_INTER, pools.inter)) if name in missing)
    return (f"{shares} for {_each(copies)} on the CPU: the server has {target.cpus} cores (triton.cpus).",)


def _stated(config: Any, name: str) -> int | None:
    """A parameter that is a whole number; others are for the rules about parameters."""
    text = config.parameters[name].string_value if name in config.parameters else ""
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _each(copies: int) -> str:
    return "the copy" if copies == 1 else f"each of {copies} copies"


def _described(name: str, threads: int, parallel: bool) -> str:
    what = "" if not parallel else " inside an operator" if name == _INTRA else " for operators side by side"
    return f"{threads} thread{'s' * (threads > 1)}{what}"


def _assume_one(config: Any, missing: list[str], copies: int, findings: Findings) -> tuple[str, ...]:
    """Threads where the number of cores is not known: one for each of several copies; a single copy keeps ONNX Runtime's numbers."""
    unknown = "how many cores there are is not known"
    keys = " and ".join(_KEYS[name] for name in missing)
    hint = f"write triton: {{cpus: 8}} with the cores of the server's container, or {keys} with the threads of one copy"
    if copies == 1:
        if _INTER in missing:
            findings.advice(
                "TG173",
                ("onnxruntime", "execution_mode"),
                f"with execution_mode: parallel a copy has two pools of threads, and {unknown}: ONNX Runtime decides {keys}",
                consequence="a pool that is not bounded has as many threads as there are cores, and the two hinder each other",
                hint=hint,
            )
        return ()
    for name in missing:
        config.parameters[name].string_value = "1"
    findings.advice(
        "TG173",
        ("instances",),
        f"{copies} copies can run on the CPU, and {unknown}: each copy gets 1 thread ({keys})",
        consequence="with as many threads as cores for each copy, which is ONNX Runtime's default, they would hinder each other; with 1, cores may be idle",
        hint=hint,
    )
    return (f"1 thread for each of {copies} copies on the CPU ({keys}): the number of cores is not known (triton.cpus in the spec).",)


def _judge(config: Any, model: ModelSpec, copies: int, target: Target, findings: Findings, *, parallel: bool) -> None:
    """Say where the copies have more threads than there are cores; every remedy mends it by itself."""
    intra, inter = _stated(config, _INTRA), _stated(config, _INTER) if parallel else 1
    if target.cpus is None or not intra or not inter:
        return
    pools, cores = Pools(intra, inter), target.cpus
    if pools.threads * copies <= cores:
        return
    sum_of = f": {pools.intra} inside an operator + {pools.inter} for operators side by side - 1" if parallel else ""
    findings.advice(
        "TG175",
        _most(model, pools),
        f"{copies} x {pools.threads} threads (copies on the CPU x threads of each{sum_of}) are {pools.threads * copies}, and triton.cpus is {cores}",
        consequence="the threads wait for each other, and all copies together are slower than fewer of them",
        hint=_remedies(pools, copies, cores, parallel=parallel),
    )


def _most(model: ModelSpec, pools: Pools) -> Key:
    """The key that asks for the most threads."""
    if pools.inter > pools.intra and model.onnxruntime.inter_op_threads is not None:
        return _PLACES[_INTER]
    return _PLACES[_INTRA] if model.cpu_threads is not None and pools.intra > 1 else ("instances",)


def _remedies(pools: Pools, copies: int, cores: int, *, parallel: bool) -> str:
    """What to write; each part of an "or" is enough."""
    share, fewer = cores // copies, cores // pools.threads
    smaller = f"write {_numbers(Pools.within(share, parallel=parallel), parallel)}" if share else ""
    lower = f"lower the count of instances to {fewer}" if fewer and copies > 1 else ""
    if smaller and lower:
        return f"{smaller}, or {lower}"
    return smaller or lower or f"write {_numbers(Pools(1), parallel)}, and lower the count of instances to {cores}"


def _numbers(pools: Pools, parallel: bool) -> str:
    """Threads of a copy as the spec has them."""
    if not parallel:
        return f"cpu_threads: {pools.intra}"
    if pools.inter == 1:
        return f"cpu_threads: {pools.intra} and remove execution_mode: parallel (with inter_op_threads)"
    return f"cpu_threads: {pools.intra} and onnxruntime: {{execution_mode: parallel, inter_op_threads: {pools.inter}}}"
