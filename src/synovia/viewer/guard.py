"""Who may connect to a page, and how much a connection may send.

A page on this machine can be reached by every web page that its owner has open: a foreign page may open a WebSocket to
127.0.0.1 (so its ``Origin`` must be ours), or have its own name resolve to 127.0.0.1 (so ``Host`` must be ours). Any
other address needs a token that only its owner was shown.
"""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, urlsplit

COOKIE: Final = "synovia_token"
_MESSAGE: Final = 2**18  # bytes of one message; a drag takes 300
_RATE: Final = 400.0  # messages a second; a page sends at most 50 for the camera and 20 for each hand
_BURST: Final = 800.0
_BYTES: Final = (2.0**22, 2.0**24)  # bytes a second, and at once: one picture of the page
_PAGES: Final = 12  # browsers at once; each has a solver of its own
_MISTAKES: Final = (0.2, 5.0)  # mistakes that are printed a second, and at once
_KNOCKS: Final = (1.0, 30.0)  # new connections a second, and at once
_PRICE: Final = 15.0  # new connections' worth that one costs which had to be closed: a flood cannot return at once


@dataclass(slots=True)
class Bucket:
    """A token bucket: a budget that fills up again by ``rate`` a second, and holds ``burst`` at most."""

    rate: float
    burst: float
    left: float = field(init=False)
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        """Start with the whole budget."""
        self.left, self._last = self.burst, time.monotonic()

    def spend(self, amount: float = 1.0) -> bool:
        """Take from the budget; return whether it was there."""
        now = time.monotonic()
        self.left = min(self.burst, self.left + (now - self._last) * self.rate)
        self._last = now
        if self.left < amount:
            return False
        self.left -= amount
        return True


@dataclass(slots=True)
class Rules:
    """Who may connect and how much may be said.

    Args:
        host: Address that the page is served on.
        token: Secret that other addresses need; None on this machine alone.
        names: Further names under which the page may be asked for, for example that of a proxy.
        largest: Bytes of one message.
        rate: Messages a second.
        burst: Messages at once.
        flow: Bytes a second, and at once.
        pages: Browsers at once.
        sessions: Tells how many sessions run; one may outlive its browser by the solve that it is at.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    names: tuple[str, ...] = ()
    largest: int = _MESSAGE
    rate: float = _RATE
    burst: float = _BURST
    flow: tuple[float, float] = _BYTES
    pages: int = _PAGES
    sessions: Callable[[], int] = lambda: 0
    port: int = 0
    open_pages: int = 0
    mistakes: Bucket = field(default_factory=lambda: Bucket(*_MISTAKES))
    _knocks: Bucket = field(default_factory=lambda: Bucket(*_KNOCKS))

    def refusal(
        self, path: str, headers: Mapping[str, str], *, socket: bool, many: bool = False
    ) -> tuple[int, str] | None:
        """Return why a request is refused (HTTP status and reason), None where it may go on.

        Args:
            path: What is asked for, with its query.
            headers: The request's headers, by name.
            socket: Whether it wants a WebSocket.
            many: Whether a header that decides is there more than once.
        """
        host = headers.get("Host", "")
        if many or not self._ours(host):
            return 421, "This page is not served under that name."
        origin = headers.get("Origin")
        if origin is not None and not self._same(origin, host):
            return 403, "Another site may not use this page."
        if socket and origin is None:
            return 403, "A page must say where it comes from."
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none") and socket:
            return 403, "Another site may not use this page."
        if self.token is not None and not self._knows(path, headers):
            return 401, "This page needs the token that was printed when it was started."
        if socket:
            if self.full:
                return 503, "There are too many pages open."
            if not self._knocks.spend():
                return 429, "Too many new pages at once."
        return None

    @property
    def full(self) -> bool:
        """Whether there are as many browsers, or sessions of browsers that have gone, as there may be."""
        return max(self.open_pages, self.sessions()) >= self.pages

    def buckets(self) -> tuple[Bucket, Bucket]:
        """Return the budgets of one connection: messages and bytes."""
        return Bucket(self.rate, self.burst), Bucket(*self.flow)

    def cut_off(self) -> None:
        """Make new connections wait, because one had to be closed: it sent too much, or what cannot be decoded."""
        self._knocks.left = max(self._knocks.left - _PRICE, -_PRICE)

    def _ours(self, host: str) -> bool:
        """Return whether a Host header names this page: an address or localhost, at its port."""
        name, port = _split(host)
        if name is None or (port is not None and self.port and port != self.port and name not in self.names):
            return False
        if name in self.names or name == self.host:
            return True
        if name == "localhost":
            return self._local
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # a bare address cannot be rebound to another machine; with a token, any address of this machine will do
        return address.is_loopback if self._local else True

    @property
    def _local(self) -> bool:
        """Whether the page is served on this machine alone."""
        return is_local(self.host)

    def _same(self, origin: str, host: str) -> bool:
        """Return whether an Origin header is that of the page itself."""
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def _knows(self, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request carries the token, in its query or in the cookie that the page was given."""
        given = parse_qs(urlsplit(path).query).get("token", [""])[0]
        try:
            cookie = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        return any(
            hmac.compare_digest(value.encode(), (self.token or "").encode())
            for value in (given, cookie.value if cookie else "")
        )


def is_local(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _split(host: str) -> tuple[str | None, int | None]:
    """Return name and port of a Host header, (None, None) where it has another form."""
    try:
        parts = urlsplit(f"//{host}")
        if parts.path or parts.query or parts.fragment or parts.username is not None or not parts.hostname:
            return None, None
        return parts.hostname, parts.port
    except ValueError:
        return None, None
