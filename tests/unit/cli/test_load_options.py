"""Options of `tritongen load` that cannot be meant are refused before anything is asked of a server, in words and with exit code 2."""

import pytest

NOBODY = ["load", "m", "-u", "grpc://127.0.0.1:1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "-5"], "-5 is not in the range"),
        (["--rate", "nan"], "'nan' is no rate"),
        (["--rate", "inf"], "'inf' is no rate"),
        (["--rate", "2e9"], "up to 1000000"),
        (["--rate", "0"], "'0' is no rate"),
        (["--rate", "fast"], "'fast' is no rate"),
        (["--duration", "10000h"], "may take 30 days"),
        (["--warmup", "10000h"], "may take 30 days"),
        (["--deadline", "10000h"], "may take 30 days"),
        (["--stages", "1:400h,1:400h"], "may take 30 days"),
        (["--metrics-url", "host:8002"], "does not say over what and where"),
        (["--metrics-url", "http://"], "does not say over what and where"),
        (["--metrics-url", "http://[bad"], "is no address"),
        (["--shape-mix", "x=1", "--shape-mix", "x=2"], "names the input 'x' twice"),
        (["--slo", "p99=1ms,p99=2ms"], "'p99' stands twice"),
        (["--users", "2", "--arrivals", "constant"], "in a closed loop a request is sent when the one before was answered"),
        (["--rate", "5", "--arrivals", "trace:t"], "a trace says itself when each request is due"),
        *[([option, ""], f"{option} is empty: give a value, or leave it out") for option in ("--data", "--scenario", "--model", "--url", "--metrics-url")],
        (["--slo", ""], "the SLO is empty"),
        (["--slo", "p99=20ms,"], "'p99=20ms,' has a comma too many"),
        (["--slo", "p99<20ms"], "'p99<20ms' is no part of an SLO: between a measure and what it must keep stands ="),
        (["--slo", "p99<=20ms"], "between a measure and what it must keep stands ="),
        (["--slo", "p99"], "between a measure and what it must keep stands ="),
        (["--slo", "p99.0=20ms, p99 = 10ms"], "'p99' stands twice"),
        (["--stages", ""], "the list of stages is empty"),
        (["--stages", "100:1s,,200:1s"], "'100:1s,,200:1s' has a comma too many"),
        (["--batch-mix", "1:70%,"], "'1:70%,' has a comma too many"),
        (["--shape-mix", "x = 3x4,"], "the mix '3x4,' has a comma too many"),
        (["--batch-mix", "1:70%,8:0.3"], "are percentages and some are not"),
    ],
)
def test_it_is_refused(tritongen, arguments, words):
    done = tritongen(*NOBODY, *arguments)
    assert (done.code, words in done.err) == (2, True), done.err
    assert "Traceback" not in done.err


def test_everything_that_is_wrong_is_said_at_once(tritongen):
    wrong = ["--rate", "-3", "--duration", "soon", "--warmup", "10000h", "--deadline", 0, "--slo", "p99", "--shape-mix", "x=3xx4", "--shape-mix", "y=?"]
    said = tritongen(*NOBODY, *wrong).err
    assert said.count("error TG420") == 7, said
    for words in ("'-3' is no rate", "--duration: ", "--warmup: ", "--deadline: it must be above 0", "'p99' is no part of an SLO", "'3xx4' is no shape", "'?'"):
        assert words in said
