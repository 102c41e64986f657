"""Who may do what: tokens and their roles, the cookie of the page, requests of other sites, security headers.

A token is 256 random bits, so a plain SHA-256 of it is safe to store: nobody can try all of them. The page logs in with
a token and keeps it in a cookie that scripts cannot read (HttpOnly) and that other sites cannot send (SameSite=Strict);
besides, a request by cookie that changes anything carries a second value that only the page knows.

Without tokens the service answers on a loopback address only. Any page in a browser on the same machine could then send
requests to it, or reach it under a name of its own (DNS rebinding); so the header Host must name this machine, and an
Origin that is not this service is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from driftvote.errors import DriftvoteError
from driftvote.serve.bodies import RequestError

COOKIE = "driftvote_token"
GRANTS = {
    "read": frozenset({"read"}),
    "review": frozenset({"read", "review"}),
    "write": frozenset({"write"}),
    "admin": frozenset({"read", "review", "write", "admin"}),
}
"""What a role may do: read everything; also answer questions; post votes and create streams; and everything."""

UNSAFE = ("POST", "PUT", "DELETE", "PATCH")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LINE = re.compile(r"^sha256:([0-9a-f]{64}) ([a-z,]+) (\S+)$")


@dataclass(frozen=True)
class Caller:
    """Whoever sent a request: the name of the token, and what it may do."""

    name: str
    grants: frozenset[str]
    csrf: str | None = None

    @property
    def role(self) -> str | None:
        """The role as the page knows it; "write" may do everything, None cannot use the page."""
        if "admin" in self.grants:
            return "write"
        return next((role for role in ("review", "read") if role in self.grants), None)


ANYBODY = Caller("anybody", GRANTS["admin"])
"""Whoever reaches a service without tokens."""

NOBODY = Caller("nobody", frozenset())


def make_token(path: Path, roles: str, name: str) -> str:
    """Add a new token to a file of tokens and return it; the file holds its hash only."""
    _check_roles(roles, "--role")
    if not re.fullmatch(r"[\w.@-]{1,60}", name):
        raise DriftvoteError(f"--name {name!r}: write up to 60 letters, digits, '.', '-' or '@'")
    token = f"dv_{secrets.token_urlsafe(32)}"
    known = read_tokens(path) if path.exists() else {}
    if name in {caller.name for caller in known.values()}:
        raise DriftvoteError(
            f"{path}: there is a token of the name {name!r} already; remove its line, or choose another"
        )
    begin = "\n" if known and not path.read_bytes().endswith(b"\n") else ""  # a last line without an end
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "a") as file:
        file.write(f"{begin}sha256:{_digest(token)} {roles} {name}\n")
    return token


def read_tokens(path: Path) -> dict[str, Caller]:
    """Return the callers of a file of tokens, by the hash of their token."""
    if os.name == "posix" and path.stat().st_mode & 0o022:
        raise DriftvoteError(f"{path}: others may write to this file, and so give themselves a token; chmod go-w it")
    found: dict[str, Caller] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise DriftvoteError(f"{path}, line {number}: a line is 'sha256:HASH ROLE NAME'; make it with serve token")
        digest, roles, name = match.groups()
        _check_roles(roles, f"{path}, line {number}")
        found[digest] = Caller(name, frozenset().union(*(GRANTS[role] for role in roles.split(","))))
    return found


def _check_roles(roles: str, where: str) -> None:
    for role in roles.split(","):
        if role not in GRANTS:
            raise DriftvoteError(f"{where}: {role!r} is not a role; the roles are {', '.join(GRANTS)}")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(token: str) -> str:
    """Return the value that requests by cookie carry beside it."""
    return hmac.new(token.encode("utf-8", "surrogatepass"), b"driftvote csrf", "sha256").hexdigest()


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Gate:
    """Finds out who sent a request, and refuses those that may not do what they ask for."""

    def __init__(self, tokens: Path | None, names: tuple[str, ...] = ()) -> None:
        self._path = tokens
        self._names = names
        self._callers = {} if tokens is None else read_tokens(tokens)
        self.reloads = 0
        if tokens is not None and not self._callers:
            raise DriftvoteError(f"{tokens}: there is no token in it; make one with driftvote serve token")

    @property
    def has_tokens(self) -> bool:
        """Whether requests need a token."""
        return self._path is not None

    def reload(self) -> int:
        """Read the tokens again; how many there are comes back. A file that cannot be read changes nothing."""
        if self._path is not None:
            self._callers = read_tokens(self._path)
            self.reloads += 1
        return len(self._callers)

    def find(self, token: str) -> Caller | None:
        """Return the caller of a token; it takes as long for a wrong one as for a right one."""
        digest, found = _digest(token), None
        for known, caller in self._callers.items():
            if hmac.compare_digest(digest, known):
                found = caller
        return found

    def admit(self, method: str, headers: Any, needs: str | None) -> Caller:
        """Return who sent a request, or refuse it; `needs` is what it must be allowed to do, None: nothing."""
        self._check_site(method, headers)
        if not self.has_tokens:
            return ANYBODY
        caller = self._identify(method, headers, strict=needs is not None)
        if needs is None:
            return caller or NOBODY
        if caller is None:
            raise RequestError(401, "no_token", "this needs a token: send the header Authorization: Bearer TOKEN")
        if needs not in caller.grants:
            raise RequestError(
                403, "not_allowed", f"the token {caller.name!r} may not do this; it needs the right to {needs}"
            )
        return caller

    def _identify(self, method: str, headers: Any, strict: bool) -> Caller | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.find(token.strip())
        token = read_cookie(headers.get("cookie", ""))
        caller = self.find(token) if token else None
        if caller is None or token is None:
            return None
        csrf = csrf_of(token)
        given = headers.get("x-csrf-token", "")
        if strict and method in UNSAFE and not hmac.compare_digest(given.encode("utf-8", "replace"), csrf.encode()):
            raise RequestError(403, "csrf", "the header X-CSRF-Token is missing or wrong; load the page again")
        return Caller(caller.name, caller.grants, csrf)

    def _check_site(self, method: str, headers: Any) -> None:
        """Refuse requests that a page of another site sends."""
        host = headers.get("host", "")
        if not self.has_tokens and not self._is_own(host):
            raise RequestError(
                403, "wrong_host", "the header Host does not name this machine; use http://127.0.0.1, or pass --name"
            )
        if method in UNSAFE:
            origin = headers.get("origin")
            if origin is not None and urlsplit_host(origin) != host.lower():
                raise RequestError(403, "other_site", "the request comes from a page of another site")
            if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                raise RequestError(403, "other_site", "the request comes from a page of another site")

    def _is_own(self, host: str) -> bool:
        name = urlsplit_name(host)
        return name is not None and (is_loopback(name) or name in self._names)


def urlsplit_host(origin: str) -> str | None:
    """Return host and port of an origin, None if it is not one."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def urlsplit_name(host: str) -> str | None:
    """Return the name in a header Host, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def read_cookie(header: str) -> str | None:
    """Return the token of a cookie header."""
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value
