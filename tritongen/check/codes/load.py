"""TG420 to TG429: load tests, their options and the files they read and write."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry

ENTRIES = (
    CodeEntry(
        "TG420",
        "load-test-that-cannot-be-made",
        None,
        "The options of a load test say what is sent, and fit the model.",
        "Rates, mixes, promises and data are read and compared with the model's description before the clock starts; nothing was sent.",
        "Correct the option that the message names.",
        "tritongen load recognizer --slo p99=20",
        "tritongen load recognizer --slo p99=20ms",
    ),
    CodeEntry(
        "TG421",
        "load-result-that-cannot-be-written",
        None,
        "The files that a load test writes can be written.",
        "What can be seen beforehand is said before the run. Where a file cannot be written after it, the result was printed.",
        "Check the path and its permissions, or choose another file.",
    ),
    CodeEntry(
        "TG422",
        "no-result-to-compare-with",
        None,
        "The file given with --compare is the result of an earlier load test.",
        "It was cut short, edited, or written by something else; docs/load_result.schema.json says what a result holds. Nothing was sent.",
        "Give a file that `tritongen load -o FILE.json` wrote.",
    ),
    CodeEntry(
        "TG423",
        "load-data-that-does-not-fit",
        None,
        "Files and samples that a load test sends are what the model's inputs take.",
        "They are read before the clock starts, as far as they are sent: a picture, recording, text or array that is damaged, or of another size, dtype or"
        " sampling rate than the input takes, is named with its file. Nothing was sent.",
        "Correct the file, or how the spec's `samples` has it read; `--data random` sends random values.",
    ),
)
