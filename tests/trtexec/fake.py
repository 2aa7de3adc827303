"""A trtexec that builds nothing: it takes the options that the real one of a release takes, refuses all others, and writes a file with a plan's header.

It parses shapes as the real one does (split at commas, then at the last colon; `--profile=N` takes what follows it). What it should be is said by variables:

    FAKE_VERSION        the TensorRT that it is, such as 10.13.2.6 (8.6.1 for one before 10)
    FAKE_FAILS          a text; builds whose ONNX path holds it fail
    FAKE_KILLED         likewise; killed by signal 9, with half a plan written
    FAKE_WAITS          likewise; waits until it is ended, with half a plan written and a file `begun` beside the ONNX file
    FAKE_BYTES          how large plans are
    FAKE_CALLS          a file that gets a line of JSON with the arguments of each build
"""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from options import known_options

FLAGS = {
    "--skipInference", "--fp16", "--bf16", "--int8", "--stronglyTyped", "--noTF32", "--versionCompatible", "--refit", "--stripWeights", "--allowGPUFallback",
    "--getPlanVersionOnly", "--help",
}  # fmt: skip
VERSION = [int(part) for part in os.environ["FAKE_VERSION"].split(".")]


def banner():
    major, minor, patch = VERSION[:3]
    code = f"{major}{minor:02}{patch:02}" if major >= 10 else f"{major}{minor}{patch:02}"
    return f"[TensorRT v{code}]" + (f" [b{VERSION[3]}]" if len(VERSION) > 3 else "")


def log(level, text):
    print(f"[01/01/2026-00:00:00] [{level}] {text}", flush=True)


def fail(text):
    log("E", text)
    print(f"&&&& FAILED TensorRT.trtexec {banner()}")
    sys.exit(1)


def shapes(text):
    """One list of shapes, as the real one splits it."""
    found = {}
    for part in text.split(","):
        if "'" in part and part.count("'") != 2:
            fail(f"Found invalid number of 's when parsing {part}")
        name, _, sizes = part.rpartition(":")
        if not all(size.lstrip("-").isdigit() for size in sizes.split("x")):
            fail(f"stoi: {sizes}")
        found[name.replace("'", "")] = [int(size) for size in sizes.split("x")]
    return found


def profiles(arguments):
    found, current = [], {}
    several = any(name == "--profile" for name, _ in arguments)
    for name, value in arguments:
        if name == "--profile":
            current = {}
            found.append(current)
        elif name.endswith("Shapes"):
            if name in current or (several and not found):
                fail("Multiple --minShapes/--optShapes/--maxShapes without --profile are not allowed.")
            current[name] = shapes(value)
    found = found if several else [current] if current else []
    for profile in found:
        if set(profile) != {"--minShapes", "--optShapes", "--maxShapes"}:
            fail("a profile lacks shapes")
        for name, least in profile["--minShapes"].items():
            if not all(a <= b <= c for a, b, c in zip(least, profile["--optShapes"][name], profile["--maxShapes"][name], strict=True)):
                fail(f"profile is invalid for {name}")
    return found


def build(given, arguments):
    onnx, plan, cache = Path(given["--onnx"]), Path(given["--saveEngine"]), Path(given["--timingCacheFile"])
    if not onnx.is_file():
        fail(f"Could not open file {onnx}")
    told = [argument for argument in arguments if argument[0] not in ("--onnx", "--saveEngine", "--timingCacheFile")]
    content = json.dumps([told, hashlib.sha256(onnx.read_bytes()).hexdigest(), os.environ.get("CUDA_VISIBLE_DEVICES", "")]).encode()
    header = b"ftrt" + bytes(20) + bytes([*VERSION, 0][:4])
    for what in ("FAILS", "KILLED", "WAITS"):
        if (text := os.environ.get(f"FAKE_{what}")) and text in str(onnx):
            plan.write_bytes(header)
            if what == "FAILS":
                fail("Network has dynamic or shape inputs, but no optimization profile has been defined.")
            if what == "WAITS":
                (onnx.parent / "begun").touch()
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)
    times = cache.read_bytes() if cache.is_file() else b""
    log("I", f"{len(times)} bytes of times are used")
    try:
        plan.write_bytes((header + content).ljust(int(os.environ.get("FAKE_BYTES", "0")), b"\0"))
        cache.write_bytes(times + b"times")
    except OSError as error:
        fail(f"Saving engine to file failed: {error.strerror}.")
    if calls := os.environ.get("FAKE_CALLS"):
        with Path(calls).open("a") as file:
            file.write(json.dumps({"arguments": arguments, "profiles": profiles(arguments)}) + "\n")


def main():
    print(f"&&&& RUNNING TensorRT.trtexec {banner()} # {' '.join(sys.argv)}", flush=True)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    arguments = [tuple(text.partition("=")[::2]) for text in sys.argv[1:]]
    given, known = dict(arguments), known_options(os.environ["FAKE_VERSION"])
    for name, value in arguments:
        if name not in known:
            fail(f"Unknown option: {name} {value}")
        if (name in FLAGS) is bool(value):
            fail(f"Wrong value of option {name}: {value!r}")
    if "--help" in given:
        return
    if "--getPlanVersionOnly" in given:
        head = Path(given["--loadEngine"]).read_bytes()[:28]
        if head[:4] != b"ftrt":
            fail("Failed to verify a plan tag.")
        log("I", f"Plan was created with TensorRT version {'.'.join(map(str, head[24:28]))}")
        return
    profiles(arguments)
    build(given, arguments)
    print(f"&&&& PASSED TensorRT.trtexec {banner()}")


main()
