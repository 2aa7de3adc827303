"""Where a server is, and how to be let in: addresses, TLS and secrets, which are never shown."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tritongen.diagnostics import Diagnostic, shown
from tritongen.errors import InputError

DEFAULT_PORTS = {"grpc": 8001, "grpcs": 8001, "http": 8000, "https": 8000}
_LABEL = "[A-Za-z0-9_-]{1,63}"
_ADDRESS = re.compile(rf"(?P<scheme>[A-Za-z]+)://(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>{_LABEL}(?:\.{_LABEL})*\.?))(?::(?P<port>[0-9]{{1,5}}))?/?")
_HARMLESS = re.compile(r"(?:[A-Za-z]+:/?/?)?[\[\]A-Za-z0-9._:-]*/?")
"""What an address can be made of without a place for a secret: no user, path, query or fragment."""
_HEADER = re.compile(r"[0-9A-Za-z_.-]+")
_PROTOCOL_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "http2-settings",
        "inference-header-content-length",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers by which HTTP, or Triton's binary tensors, say where a message ends and how to read it (RFC 9110 and 9112; gRPC has `grpc-*` beside them)."""
_HINT = "write grpc://host:8001 or http://host:8000 (https:// and grpcs:// for TLS)"


@dataclass(frozen=True)
class Endpoint:
    """A server's address. `host` is without brackets where it is an IPv6 address."""

    protocol: str
    host: str
    port: int
    tls: bool

    @cached_property
    def authority(self) -> str:
        """`host:port`, as libraries take it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @cached_property
    def url(self) -> str:
        """`grpc://host:port`, for messages."""
        return f"{self.protocol}{'s' * self.tls}://{self.authority}"


@dataclass(frozen=True)
class Tls:
    """What a client needs for TLS beyond the certificates that the machine trusts; paths of PEM files.

    Attributes:
        ca: certificates to trust in place of the machine's.
        cert: the client's own certificate, for mutual TLS; `key` goes with it.
        key: the client's private key.
    """

    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise InputError(
                [
                    Diagnostic(
                        "TG069", "mutual TLS needs both a certificate and its key", hint="give Tls(cert=..., key=...), or --tls-cert and --tls-key, together"
                    )
                ]
            )

    def read(self, path: str | Path | None) -> bytes | None:
        """The content of one of the files. Raises InputError (TG069) where it cannot be read."""
        if path is None:
            return None
        if not isinstance(path, str | Path):
            raise InputError([Diagnostic("TG069", f"a TLS file is given as {type(path).__name__}", hint="give the path of a PEM file")])
        try:
            return Path(path).read_bytes()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError([Diagnostic("TG069", f"{shown(str(path))} cannot be read: {why}", hint="check the path and its permissions")]) from error


@dataclass(frozen=True)
class Access:
    """What every request carries to be let in. Its text never shows a value."""

    tls: Tls = field(default_factory=Tls)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    wants_tls: bool = False


def parse_url(url: str) -> Endpoint:
    """Read `grpc://host:8001`, `http://…`, `https://…` or `grpcs://…`; the port may be left out.

    Raises InputError (TG060) for anything else, and shows it only where no secret can be in it.
    """
    found = _ADDRESS.fullmatch(url) if isinstance(url, str) else None
    scheme = found["scheme"].lower() if found else ""
    if found is None or scheme not in DEFAULT_PORTS or (found["six"] and not _is_ipv6(found["six"])) or not 0 < int(found["port"] or 1) < 2**16:
        raise InputError([_wrong_address(url)])
    port = int(found["port"] or DEFAULT_PORTS[scheme])
    return Endpoint(scheme[:4], (found["six"] or found["host"]).lower(), port, tls=scheme in ("https", "grpcs"))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _wrong_address(url: object) -> Diagnostic:
    """What is wrong with an address that cannot be read."""
    if not isinstance(url, str):
        return Diagnostic("TG060", f"an address is given as {type(url).__name__}, not as text", hint=_HINT)
    if "@" in url:
        return Diagnostic("TG060", "an address with a user or password in it is not read", hint="give secrets as token= or headers= (--token-file, --header)")
    what = shown(url) if _HARMLESS.fullmatch(url) else "the address"
    if any(char.isspace() or not char.isprintable() for char in url):
        return Diagnostic("TG060", "the address has spaces, line breaks or other characters that cannot be seen", hint=_HINT)
    if "?" in url or "#" in url:
        return Diagnostic("TG060", "the address has a query or a fragment, which no server of Triton's takes", hint=_HINT)
    if url.partition("://")[0].lower() not in DEFAULT_PORTS or "://" not in url:
        return Diagnostic("TG060", f"{what} does not say which protocol to use", hint=_HINT)
    port = re.fullmatch(r"[^/]*//(?:\[[^\]]*\]|[^:/\[]*):([^/]*)/?", url)
    if port and not (re.fullmatch("[0-9]{1,5}", port[1]) and 0 < int(port[1]) < 2**16):
        return Diagnostic("TG060", f"{what} has no valid port: ports are 1 to 65535", hint=_HINT)
    return Diagnostic("TG060", f"{what} cannot be read: after the protocol it has a host, perhaps a port, and nothing else", hint=_HINT)


def parse_urls(urls: str | Sequence[str]) -> tuple[Endpoint, ...]:
    """One address or several of one protocol, all with TLS or all without. Raises InputError (TG060) with everything that is wrong."""
    given = [urls] if not isinstance(urls, Sequence) or isinstance(urls, str | bytes | bytearray) else list(urls)
    endpoints: list[Endpoint] = []
    problems: list[Diagnostic] = []
    for url in given:
        try:
            endpoints.append(parse_url(url))
        except InputError as error:
            problems += error.diagnostics
    if not given:
        problems.append(Diagnostic("TG060", "no address is given", hint=_HINT))
    if len({endpoint.protocol for endpoint in endpoints}) > 1:
        problems.append(Diagnostic("TG060", "the addresses are of two protocols", hint="use gRPC for all of them, or HTTP"))
    elif len({endpoint.tls for endpoint in endpoints}) > 1:
        hint = "use grpcs:// or https:// for all of them, or for none: requests and tokens go to each in turn"
        problems.append(Diagnostic("TG060", "some of the addresses are with TLS and some without", hint=hint))
    if problems:
        raise InputError(problems)
    return tuple(endpoints)


def make_access(token: str | None, tls: Tls | None, headers: Mapping[str, str] | None) -> Access:
    """What requests carry. Raises InputError (TG069) for what no protocol takes, without showing a value."""
    problems = [] if headers is None else header_problems(headers)
    if token is not None and not (_is_value(token) and token.strip()):
        what = "the token is empty; leave it out where there is none" if token == "" else "the token cannot be sent"
        problems.append(f"{what}: it is text of printable ASCII on one line")
    if tls is not None and not isinstance(tls, Tls):
        problems.append(f"tls is given as {type(tls).__name__}, not as Tls(...)")
    if token is not None and isinstance(headers, Mapping) and any(isinstance(name, str) and name.lower() == "authorization" for name in headers):
        problems.append("the token and the header 'authorization' are the same")
    if problems:
        raise InputError([Diagnostic("TG069", problem) for problem in problems])
    given = {**(headers or {}), **({"authorization": f"Bearer {token}"} if token is not None else {})}
    return Access(tls or Tls(), checked_headers(given), wants_tls=tls is not None)


def check_access(endpoints: Sequence[Endpoint], access: Access) -> None:
    """Raise InputError (TG069) where TLS files cannot be used, or are given for addresses without TLS.

    gRPC would find out with the first request, and say only that the server cannot be reached.
    """
    if not access.wants_tls:
        return
    if not all(endpoint.tls for endpoint in endpoints):
        hint = "write grpcs:// or https://, or leave tls= (--tls-ca, --tls-cert, --tls-key) out"
        raise InputError([Diagnostic("TG069", "tls= is given for an address without TLS, where nothing would be encrypted", hint=hint)])
    tls_context(access)


def tls_context(access: Access) -> ssl.SSLContext:
    """The TLS context of a client. Raises InputError (TG069) where a file cannot be read, is not PEM, or a certificate and its key are no pair."""
    tls = access.tls
    problems: list[Diagnostic] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context = _trusting(tls)
    except InputError as error:
        problems += error.diagnostics
    try:
        if tls.cert is not None and tls.key is not None:
            _identify(context, tls)
    except InputError as error:
        problems += error.diagnostics
    if problems:
        raise InputError(problems)
    return context


def _trusting(tls: Tls) -> ssl.SSLContext:
    """A context that trusts the certificates of `ca`, or else those of the machine."""
    if tls.ca is None:
        return ssl.create_default_context()
    content = tls.read(tls.ca)
    try:
        return ssl.create_default_context(cadata=_pem(content))
    except (ssl.SSLError, ValueError) as error:
        message = f"{shown(str(tls.ca))} holds no certificates in PEM form"
        raise InputError(
            [Diagnostic("TG069", message, hint="ca= (--tls-ca) is a file with -----BEGIN CERTIFICATE-----; openssl x509 makes PEM of DER")]
        ) from error


def _identify(context: ssl.SSLContext, tls: Tls) -> None:
    texts = [_read_pem(path, tls.read(path)) for path in (tls.cert, tls.key)]
    swapped = "PRIVATE KEY-----" in texts[0] and "CERTIFICATE-----" in texts[1]
    hint = "the files of certificate and key are swapped" if swapped else "the certificate goes into one file, its private key into the other, or both into one"
    problems = [
        Diagnostic("TG069", f"{shown(str(path))} holds no {what}", hint=hint)
        for path, text, what, mark in zip((tls.cert, tls.key), texts, ("certificate", "private key"), ("CERTIFICATE-----", "PRIVATE KEY-----"), strict=True)
        if mark not in text
    ]
    if problems:
        raise InputError(problems)
    try:
        # An empty password: else OpenSSL asks for one on the terminal.
        context.load_cert_chain(str(tls.cert), str(tls.key), password="")
    except ssl.SSLError as error:
        pair = error.reason == "KEY_VALUES_MISMATCH"
        message = "is not the key of the certificate" if pair else "and the certificate cannot be used: one of them is damaged, or the key has a password"
        hint = "give the private key that the certificate was made with, without a password"
        raise InputError([Diagnostic("TG069", f"{shown(str(tls.key))} {message} {shown(str(tls.cert))}", hint=hint)]) from error


def _read_pem(path: str | Path | None, content: bytes | None) -> str:
    """The text of a file. Raises InputError (TG069) for what is no PEM."""
    try:
        return _pem(content)
    except ValueError as error:
        hint = "give a file that begins with -----BEGIN; openssl makes PEM of DER"
        raise InputError([Diagnostic("TG069", f"{shown(str(path))} is not in PEM form", hint=hint)]) from error


def _pem(content: bytes | None) -> str:
    """The file as text. Raises ValueError for what is no PEM."""
    text = (content or b"").decode("utf-8")
    if "-----BEGIN" not in text:
        raise ValueError("no PEM")
    return text.encode("ascii", "ignore").decode()


def header_problems(headers: object) -> list[str]:
    """What keeps headers from being sent over either protocol; their values are never in it."""
    if not isinstance(headers, Mapping):
        return [f"headers are given as {type(headers).__name__}, not as a mapping of text by name"]
    problems: list[str] = []
    seen: set[str] = set()
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            problems.append(f"the header {shown(name)} cannot be sent: names have letters, digits and - _ .")
            continue
        lower = name.lower()
        if lower in _PROTOCOL_HEADERS or lower.startswith("grpc-"):
            problems.append(f"the header {shown(name)} belongs to the protocol, which sets it itself")
        elif lower.endswith("-bin"):
            problems.append(f"the header {shown(name)} cannot be sent: gRPC takes names that end in -bin for bytes")
        elif lower in seen:
            problems.append(f"the header {shown(name)} is given twice, in upper and lower case")
        elif not _is_value(value):
            problems.append(f"the header {shown(name)} cannot be sent: values are text of printable ASCII on one line")
        seen.add(lower)
    return problems


def _is_value(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and value.isascii()


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with names in lower case, as gRPC wants them. Raises InputError (TG069)."""
    problems = header_problems(headers)
    if problems:
        raise InputError([Diagnostic("TG069", problem) for problem in problems])
    return {name.lower(): value for name, value in headers.items()}
