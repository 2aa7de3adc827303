"""Addresses, headers, tokens and TLS files: what cannot be used is refused when a client is made, and no secret is ever shown."""

import asyncio
import ssl

import certificates
import pytest

import tritongen
from tritongen.client.endpoint import Tls, check_access, header_problems, make_access, parse_url, parse_urls, tls_context
from tritongen.errors import InputError

SECRET = "s3cret"


def make_blocking(*arguments, **options):
    tritongen.Client(*arguments, **options).close()


def make_waiting(*arguments, **options):
    async def make():
        await tritongen.AsyncClient(*arguments, **options).close()

    asyncio.run(make())


@pytest.fixture(params=[make_blocking, make_waiting], ids=["blocking", "asyncio"])
def make(request):
    """Makes a client of either kind, and closes it."""
    return request.param


def refusal(function, *arguments, **options):
    with pytest.raises(InputError) as error:
        function(*arguments, **options)
    return error.value


@pytest.mark.parametrize(
    "url",
    [
        f"user:{SECRET}@host:8001",
        f"{SECRET}@http://h",
        f"http://{SECRET}@host",
        f"http://host/?token={SECRET}",
        f"http://host/{SECRET}",
        f"http://host#{SECRET}",
        f"token={SECRET}://host",
        f"http://host\n{SECRET}=1",
    ],
)
def test_what_could_be_a_secret_is_not_shown(make, url):
    error = refusal(make, url)
    assert SECRET not in str(error) + repr(error) + "".join(item.hint for item in error.diagnostics)
    assert error.diagnostics[0].code == "TG060"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://[::1", "'http://[::1' cannot be read"),
        ("http://[1:2]", "cannot be read"),
        ("http://a..b", "cannot be read"),
        (f"http://{'a' * 64}", "cannot be read"),
        ("http://host:0", "no valid port: ports are 1 to 65535"),
        ("http://host:65536", "no valid port"),
        ("http://host:", "no valid port"),
        ("http://host:80a", "no valid port"),
        ("http://host:\u0663", "no valid port"),
        ("http://host#x", "a query or a fragment"),
        ("http://ho\nst", "line breaks"),
        (" http://host", "spaces"),
        ("http://host\0", "cannot be seen"),
        ("host:8001", "'host:8001' does not say which protocol"),
        ("grpc:host", "does not say which protocol"),
        (5, "given as int, not as text"),
        (None, "given as NoneType"),
        (b"http://h", "given as bytes"),
        ([b"http://h"], "given as bytes"),
        ([], "no address is given"),
    ],
)
def test_an_address_that_is_none_is_refused(make, url, words):
    assert words in str(refusal(make, url))


def test_all_addresses_that_are_wrong_are_said_at_once():
    assert len(refusal(parse_urls, ["grpc://a", "host", "grpc://b:0", "http://c"]).diagnostics) == 3


@pytest.mark.parametrize(("urls", "words"), [(["grpc://a", "grpcs://b"], "some of the addresses are with TLS"), (["grpc://a", "http://b"], "two protocols")])
def test_addresses_of_two_kinds_are_refused(make, urls, words):
    assert words in str(refusal(make, urls))


@pytest.mark.parametrize("url", ["GRPC://Host", "grpc://host/", "http://[::1]", "http://a_b.c-d.", "https://10.0.0.1:1"])
def test_what_a_server_can_be_called_is_read(url):
    assert parse_url(url).authority == parse_url(parse_url(url).url).authority


PROTOCOLS = [
    "Content-Length", "content-type", "CONTENT-ENCODING", "transfer-encoding", "host", "connection", "te", "trailer", "upgrade", "expect",
    "accept-encoding", "Inference-Header-Content-Length", "grpc-timeout", "grpc-encoding", "keep-alive",
]  # fmt: skip


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_header_of_the_protocol_is_refused(make, name):
    error = refusal(make, "http://host", headers={name: SECRET})
    assert f"'{name}' belongs to the protocol" in str(error)
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-a-bin": SECRET},
        {"x-a\n": SECRET},
        {"x a": SECRET},
        {":path": SECRET},
        {"": SECRET},
        {5: SECRET},
        {"é": SECRET},
        {"x": 5},
        {"x": f"{SECRET}\n"},
        {"x": f"{SECRET}é"},
        {"x": SECRET.encode()},
        {"X-A": SECRET, "x-a": SECRET},
        [("x-a", SECRET)],
        "x-a",
    ],
    ids=str,
)
def test_a_header_that_cannot_be_sent_is_refused(make, headers):
    error = refusal(make, "grpc://host", headers=headers)
    assert error.diagnostics[0].code == "TG069"
    assert SECRET not in str(error)


def test_headers_that_servers_and_proxies_read_are_taken():
    given = {"Authorization": "Basic eA==", "triton-grpc-protocol-infer-key": "v", "traceparent": "00-1-2-01", "x_y.z": "", "User-Agent": "me"}
    assert header_problems(given) == []
    assert make_access(None, None, given).headers == {name.lower(): value for name, value in given.items()}


@pytest.mark.parametrize(
    "options",
    [{"token": 5}, {"token": b"x"}, {"token": ""}, {"token": " "}, {"token": "a\nb"}, {"token": "a", "headers": {"Authorization": "b"}}, {"tls": "ca.pem"}],
    ids=str,
)
def test_access_that_is_none_is_refused(make, options):
    assert refusal(make, "grpcs://host", **options).diagnostics[0].code == "TG069"


@pytest.fixture
def files(tmp_path):
    """A folder with usable files, and with those that people give by mistake."""
    texts = {"cert": certificates.CERT, "key": certificates.KEY, "other": certificates.OTHER_KEY, "locked": certificates.LOCKED_KEY}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "der").write_bytes(ssl.PEM_cert_to_DER_cert(certificates.CERT))
    (tmp_path / "garbage").write_bytes(b"\xff\x00\x01 nothing")
    (tmp_path / "damaged").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (tmp_path / "empty").write_text("")
    return tmp_path


PROTOCOL = pytest.mark.parametrize("protocol", ["grpcs", "https"])


@PROTOCOL
def test_files_that_fit_are_taken(make, files, protocol):
    make(f"{protocol}://host", tls=Tls(ca=files / "cert", cert=str(files / "cert"), key=files / "key"))
    make(f"{protocol}://host", tls=Tls())


@PROTOCOL
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ca": "missing"}, "cannot be read: No such file"),
        ({"ca": "."}, "cannot be read: Is a directory"),
        ({"ca": "der"}, "holds no certificates in PEM form"),
        ({"ca": "garbage"}, "holds no certificates in PEM form"),
        ({"ca": "damaged"}, "holds no certificates in PEM form"),
        ({"ca": "empty"}, "holds no certificates in PEM form"),
        ({"ca": "key"}, "holds no certificates in PEM form"),
        ({"cert": "missing", "key": "key"}, "cannot be read: No such file"),
        ({"cert": "cert", "key": "missing"}, "cannot be read: No such file"),
        ({"cert": "der", "key": "key"}, "is not in PEM form"),
        ({"cert": "cert", "key": "garbage"}, "is not in PEM form"),
        ({"cert": "cert", "key": "other"}, "is not the key of the certificate"),
        ({"cert": "damaged", "key": "key"}, "one of them is damaged"),
        ({"cert": "cert", "key": "locked"}, "the key has a password"),
        ({"cert": "key", "key": "cert"}, "key' holds no certificate"),
        ({"cert": "key", "key": "key"}, "key' holds no certificate"),
        ({"cert": "cert", "key": "cert"}, "cert' holds no private key"),
        ({"ca": "a\0b"}, "cannot be read"),
    ],
    ids=str,
)
def test_files_that_cannot_be_used_are_refused_when_the_client_is_made(make, files, protocol, given, words):
    error = refusal(make, f"{protocol}://host", tls=Tls(**{name: files / path for name, path in given.items()}))
    assert words in str(error)
    assert {item.code for item in error.diagnostics} == {"TG069"}


def test_files_that_are_swapped_are_called_so(files):
    error = refusal(tls_context, make_access(None, Tls(cert=files / "key", key=files / "cert"), None))
    assert [item.hint for item in error.diagnostics] == ["the files of certificate and key are swapped"] * 2


def test_all_files_that_cannot_be_used_are_said_at_once(files):
    access = make_access(None, Tls(ca=files / "der", cert=files / "cert", key=files / "other"), None)
    assert len(refusal(tls_context, access).diagnostics) == 2


def test_a_file_is_given_by_its_path(make):
    assert "given as int" in str(refusal(make, "https://host", tls=Tls(ca=5)))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_tls_without_an_address_that_has_it_is_refused(make, files, protocol):
    for tls in (Tls(), Tls(ca=files / "cert")):
        assert "nothing would be encrypted" in str(refusal(make, f"{protocol}://host", tls=tls))


def test_the_files_of_a_client_decide_whom_it_trusts(files):
    access = make_access(None, Tls(ca=files / "cert"), None)
    check_access([parse_url("https://host")], access)
    assert tls_context(access).verify_mode is ssl.CERT_REQUIRED
    assert tls_context(access).cert_store_stats()["x509"] == 1
