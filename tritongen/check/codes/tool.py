"""TG040 to TG079 and TG9xx: tritongen's own commands, their arguments and the places they write to."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

_PATH = "Check the path and its permissions."


def _entry(code: str, name: str, summary: str, why: str, fix: str = _PATH) -> CodeEntry:
    return CodeEntry(code, name, None, summary, why, fix)


ENTRIES = (
    _entry(
        "TG040",
        "unreadable-repository",
        "The model repository can be read.",
        "render compares what is there with what it would write; of what cannot be read, nobody knows what would be lost. With --keep-going, models of "
        "which all can be read are written.",
    ),
    _entry(
        "TG041",
        "repository-that-is-no-folder",
        "A model repository is a folder.",
        "Models are its sub-folders.",
        "Choose another place with `tritongen render -o`.",
    ),
    _entry(
        "TG042", "model-folder-as-repository", "The repository is not a model's own folder.", "Triton takes every folder in it for a model.", "Give its parent."
    ),
    _entry(
        "TG043",
        "hand-edit-in-the-way",
        "render overwrites no file that was edited by hand.",
        "The header of a generated config holds a hash of its text; a difference is somebody's work.",
        "Move the change into the spec (`config:` takes any field), or overwrite it with `tritongen render --force`.",
    ),
    _entry("TG044", "unwritable-repository", "The model repository can be written.", "The operating system refused it."),
    _entry("TG045", "spec-in-the-way", "init overwrites no spec.", "It may hold somebody's work.", "Write another one with -o, or overwrite it with --force."),
    _entry("TG046", "unwritable-spec", "The new spec can be written.", "The operating system refused it."),
    _entry(
        "TG047",
        "nothing-to-serve",
        "serve needs a spec or a model repository.",
        "The path is neither.",
        "Give a spec.yaml, or the folder of a model repository.",
    ),
    _entry(
        "TG048",
        "repository-in-use",
        "One render writes a model repository or a deployment at a time; a second one waits for the first.",
        "What both read would be wrong for the one that writes last. The lock goes with its process, however that ends.",
        "Run it again when the other one is done.",
    ),
    _entry(
        "TG049",
        "changed-while-rendering",
        "The files of a model stay as they are while it is rendered.",
        "What was read and proved is not what would be written: a program is still writing the source, another render wrote the versions that "
        "`version: auto` counts, or somebody wrote into the folder, or a file of the deployment, that would be replaced.",
        "Run it again.",
    ),
    _entry(
        "TG050",
        "plan-left-out",
        "A model's plan is what its config asks for.",
        "A plan that was built from another model, or with other settings, would serve something else without a word, so render does not keep it. Until it is "
        "built again Triton cannot load the model; a server that has it loaded goes on with the old one.",
        "Build it: tritongen build, or the script beside the repository.",
    ),
    _entry(
        "TG051",
        "nothing-to-go-on-with",
        "With --keep-going each mistake belongs to a model that has a name, and a model is left.",
        "A mistake outside of the models concerns them all; and the folder of a model without a usable name would be taken for one that left the spec.",
        "Mend what is said beside it.",
    ),
    _entry(
        "TG052",
        "source-that-would-go",
        "A source stays where it is.",
        "What lies in the repository under a name that tritongen writes is its own to replace and remove: with another version, another name, --prune or a "
        "rewritten file the render would take away what it was made from.",
        "Keep sources outside the repository.",
    ),
    _entry(
        "TG060",
        "address-of-no-server",
        "The address of a server has a protocol, a host and a port.",
        "http and gRPC listen on different ports.",
        "Write it as grpc://host:8001 or http://host:8000.",
    ),
    _entry(
        "TG061",
        "request-that-does-not-fit",
        "A request has the inputs, dtypes and shapes of the model.",
        "Triton refuses it otherwise.",
        "Correct the inputs that the message names.",
    ),
    _entry("TG062", "no-such-input", "Inputs that are given exist in the model.", "The value would go nowhere.", "Use one of the model's names."),
    _entry("TG063", "batch-over-the-maximum", "A batch is no larger than max_batch_size.", "Triton refuses larger requests.", "Ask for fewer rows."),
    _entry(
        "TG064",
        "input-that-cannot-be-made-up",
        "Inputs without a value get one that is made up from shape and dtype.",
        "Some shapes cannot be guessed.",
        "Give the shape or the value.",
    ),
    _entry("TG065", "unwritable-output", "Outputs can be written.", "The operating system refused it.", "Choose another folder with -o."),
    _entry(
        "TG066",
        "request-too-large",
        "The tensors of a request fit one message.",
        "gRPC carries 2 GiB at most.",
        "Send fewer rows or smaller inputs.",
    ),
    _entry(
        "TG067",
        "time-limit-that-is-none",
        "A time limit is above 0 and finite.",
        "No clock counts the others.",
        "Give seconds, up to a million.",
    ),
    _entry(
        "TG068",
        "request-refused-by-the-server",
        "The server takes what a request says.",
        "It judged the request by what only it can know, such as the values of a shape tensor, or its model changed a moment ago.",
        "The message holds the server's own words.",
    ),
    _entry(
        "TG069",
        "access-that-cannot-be-given",
        "Headers, tokens and certificates can be sent.",
        "Headers are printable ASCII on one line; TLS files are PEM and readable; mutual TLS needs a certificate and its key.",
        "Correct the one that the message names; its value is never shown.",
    ),
    _entry(
        "TG070",
        "nothing-to-check",
        "A path to check is a model repository, a model's folder or a config.pbtxt.",
        "Anything else has no rules of Triton's.",
        "Give the folder that holds one sub-folder for each model.",
    ),
    _entry(
        "TG071",
        "unknown-code",
        "--select, --ignore and suppressions name codes that exist.",
        "A misspelt code would silently select nothing.",
        "Use a code, the beginning of one (TG25), or a name.",
    ),
    _entry("TG072", "release-in-another-form", "A release is written as YY.MM.", "It is the tag of NVIDIA's container.", "Write it as in --release 25.08."),
    _entry(
        "TG073",
        "wrong-settings",
        "Settings in pyproject.toml and tritongen.toml have keys and values that exist.",
        "A misspelt setting would silently do nothing.",
        "Correct the setting.",
    ),
    CodeEntry(
        "TG074",
        "unused-suppression",
        Consequence.FRAGILE,
        "A suppression comment suppresses something.",
        "A comment that suppresses nothing hides the next real finding of that code.",
        "Remove the comment, or the code from its list.",
        '# tritongen: ignore[TG371]\nname: "m"',
        'name: "m"',
    ),
    CodeEntry(
        "TG075",
        "unreadable-config",
        Consequence.REFUSED,
        "config.pbtxt is a regular file that can be read.",
        "Triton reads it when it loads the model; a pipe or a missing permission ends that, and a folder in its place crashed the whole server (tried on "
        "24.10).",
        "Make it a regular file that the server's user may read.",
    ),
    CodeEntry(
        "TG076",
        "config-out-of-reach",
        Consequence.FRAGILE,
        "config.pbtxt and its folder lie inside the repository, and it has a size that people write.",
        "Links that lead out of the repository are not followed, and files of more than 500,000 bytes are not read, in a repository or alone: nothing about "
        "the model was checked.",
        "Copy the file into the model's folder, or the folder into the repository.",
    ),
    CodeEntry(
        "TG077",
        "too-many-files",
        Consequence.FRAGILE,
        "A model's folder holds files in numbers that can be looked at.",
        "Triton looks through the folder whenever it polls. Rules about files were left out, since not all of them were looked at.",
        "Move what is not part of the model elsewhere.",
    ),
    _entry("TG078", "fix-that-cannot-be-written", "--fix can write the files it mends.", "The operating system refused it, or the file changed meanwhile."),
    _entry("TG079", "unwritable-report", "The report can be written.", "The operating system refused it.", "Choose another file with -o."),
    _entry(
        "TG080",
        "setting-of-no-client",
        "What a client is made with can be kept: how often it tries again, how many requests are under way at once, how they are compressed.",
        "It would fail with the first request, or never send one.",
        "Correct the setting that the message names.",
    ),
    _entry(
        "TG901", "server-options", "Options of the embedded server fit together.", "Triton would end at once.", "Correct the option that the message names."
    ),
    _entry(
        "TG902",
        "repository-to-serve-missing",
        "The model repository to serve is a folder that exists.",
        "Triton would end at once.",
        "Give the folder that holds one sub-folder for each model.",
    ),
    _entry(
        "TG903",
        "config-this-machine-cannot-honour",
        "With --strict a model is served exactly as its config asks.",
        "This machine has no GPU, or no TensorRT.",
        "Serve it where the GPU is, or leave out --strict.",
    ),
    _entry(
        "TG904",
        "plan-without-source",
        "A TensorRT plan is served here from its source ONNX.",
        "The embedded server has no TensorRT backend.",
        "Put the ONNX where `tritongen render` puts it.",
    ),
)
