"""Where a server is, and how to be let in: addresses, TLS and secrets, which are never shown."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError

DEFAULT_PORTS = {"grpc": 8001, "grpcs": 8001, "http": 8000, "https": 8000}
_HOST = re.compile(r"^[A-Za-z0-9._-]+$|^[0-9a-fA-F:.]+$")
_HEADER = re.compile(r"^[0-9A-Za-z_.-]+$")
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
            raise InputError([Diagnostic("TG069", "mutual TLS needs both a certificate and its key", hint="give Tls(cert=..., key=...) together")])

    def read(self, path: str | Path | None) -> bytes | None:
        """The content of one of the files. Raises InputError (TG069) where it cannot be read."""
        if path is None:
            return None
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise InputError([Diagnostic("TG069", f"{path} cannot be read: {error.strerror}", hint="check the path and its permissions")]) from error


@dataclass(frozen=True)
class Access:
    """What every request carries to be let in. Its text never shows a value."""

    tls: Tls = field(default_factory=Tls)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_url(url: str) -> Endpoint:
    """Read `grpc://host:8001`, `http://…`, `https://…` or `grpcs://…`; the port may be left out. Raises InputError (TG060) for anything else."""
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise InputError([Diagnostic("TG060", "an address with a user or password in it is not read", hint="give secrets as token= or headers=")])
    if parts.scheme not in DEFAULT_PORTS:
        raise InputError([Diagnostic("TG060", f"'{url}' does not say which protocol to use", hint=_HINT)])
    try:
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError as error:
        raise InputError([Diagnostic("TG060", f"'{url}' has no valid port: {error}", hint=_HINT)]) from error
    if not parts.hostname or not _HOST.match(parts.hostname) or parts.path.strip("/") or parts.query:
        raise InputError([Diagnostic("TG060", f"'{url}' is not the address of a server", hint=_HINT)])
    return Endpoint(parts.scheme[:4], parts.hostname, port, tls=parts.scheme in ("https", "grpcs"))


def parse_urls(urls: str | Sequence[str]) -> tuple[Endpoint, ...]:
    """One address or several of one protocol. Raises InputError (TG060)."""
    endpoints = tuple(parse_url(url) for url in ([urls] if isinstance(urls, str) else urls))
    if not endpoints:
        raise InputError([Diagnostic("TG060", "no address is given", hint=_HINT)])
    if len({endpoint.protocol for endpoint in endpoints}) > 1:
        raise InputError([Diagnostic("TG060", "the addresses are of two protocols", hint="use gRPC for all of them, or HTTP")])
    return endpoints


def make_access(token: str | None, tls: Tls | None, headers: Mapping[str, str] | None) -> Access:
    """What requests carry. Raises InputError (TG069) for a header that no protocol takes, without showing its value."""
    given = {**(headers or {}), **({"authorization": f"Bearer {token}"} if token is not None else {})}
    return Access(tls or Tls(), checked_headers(given))


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with names in lower case, as gRPC wants them. Raises InputError (TG069)."""
    for name, value in headers.items():
        if not _HEADER.match(name) or not isinstance(value, str) or not value.isprintable() or not value.isascii():
            message = f"the header {name!r:.60} cannot be sent"
            raise InputError([Diagnostic("TG069", message, hint="names have letters, digits and - _ .; values are printable ASCII on one line")])
    return {name.lower(): value for name, value in headers.items()}


def tls_context(access: Access) -> ssl.SSLContext:
    """The TLS context of a client. Raises InputError (TG069) where a file cannot be used."""
    tls = access.tls
    ca = tls.read(tls.ca)
    context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    if tls.cert is not None and tls.key is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context
