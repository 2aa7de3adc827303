"""`tritongen load` and servers that do not let everybody in."""

import json

import certificates
import scripted_triton
import tls_servers

TOKEN, KEY = "very-secret-token", "another-secret-value"


def test_what_lets_us_in_reaches_the_server_from_senders_too_and_is_shown_nowhere(tmp_path, tritongen, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("token", TOKEN), ("cert", certificates.CERT), ("key", certificates.KEY), ("ca", tls_servers.LOCALHOST.read_text())):
        (tmp_path / name).write_text(text)
    access = ["--token-file", "token", "--header", f"x-key={KEY}", "--tls-ca", "ca", "--tls-cert", "cert", "--tls-key", "key"]
    what = ["--rate", 20, "--arrivals", "constant", "--duration", "500ms", "--warmup", 0, "--pool", 1, "-o", "out.json", "--html", "out.html"]
    with scripted_triton.serve(tls_servers.context(mutual=True)) as script:
        # Every other request is answered with an error that quotes what the client must not show.
        script.infer = lambda asked: quoting(asked) if len(script.asked) % 2 else scripted_triton.answer(1)
        done = tritongen("load", "m", "-u", script.url, *access, *what)
    assert done.code in (0, 1), done.err  # 1 on a machine that is too busy to be believed
    data = json.loads((tmp_path / "out.json").read_text())
    assert {(asked.headers["authorization"], asked.headers["x-key"]) for asked in script.asked} == {(f"Bearer {TOKEN}", KEY)}
    assert sum(data["requests"].values()) == len(script.asked) == 10
    assert "you are [not shown] with [not shown]" in data["errors"][0]["message"]
    for shown in (done.out, done.err, (tmp_path / "out.json").read_text(), (tmp_path / "out.html").read_text()):
        assert TOKEN not in shown
        assert KEY not in shown


def quoting(asked):
    return 400, {}, json.dumps({"error": f"you are {asked.headers['authorization']} with {asked.headers['x-key']}"}).encode()


def test_workers_have_access_of_their_own(tritongen, tmp_path):
    done = tritongen("load", "--worker", "--token-file", tmp_path / "none")
    assert (done.code, "--token-file" in done.err, "cannot be read: No such file" in done.err) == (2, True, True), done.err
