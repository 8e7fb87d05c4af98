"""viser's server behind a guard: who may connect to a page, and how much a connection may send.

A page on this machine can be reached by every web page that its owner has open: a foreign page may open a WebSocket to
127.0.0.1 (so its ``Origin`` must be ours), or have its own name resolve to 127.0.0.1 (so ``Host`` must be ours). Any
other address needs a token that only its owner was shown.

viser starts its server through ``websockets.asyncio.server.serve`` and offers no hook. While a page starts, that name
stands for ``serve`` with our checks put in; a page whose server came up without them is stopped at once.
"""

from __future__ import annotations

import asyncio
import hmac
import http
import ipaddress
import logging
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from io import StringIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from synovia.errors import SynoviaError

if TYPE_CHECKING:
    from viser import ViserServer

_COOKIE: Final = "synovia_token"
_LARGEST: Final = 2**24  # bytes of a message: a picture of the page; a drag takes 300
_MESSAGES: Final = (400.0, 800.0)  # a second, and at once; a page sends at most 50 for the camera and 20 for each hand
_BYTES: Final = (2.0**22, 2.0**24)  # bytes a second, and at once: one picture of the page
_PAGES: Final = 12  # browsers at once; each has a solver of its own
_MISTAKES: Final = (0.2, 5.0)  # mistakes that are printed a second, and at once
_CONNECTIONS: Final = (1.0, 30.0)  # new connections a second, and at once
_PRICE: Final = 15.0  # new connections' worth that one costs which had to be closed: a flood cannot return at once
_PRINTED: Final = 160  # characters of an error message that are printed
_CONTROL: Final = 8  # WebSocket operation codes from here on are control frames: close, ping, pong

_STARTING: Final = threading.Lock()
_READ: Final = ("Host", "Origin", "Cookie", "Sec-Fetch-Site")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


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
    """Who may connect.

    Args:
        host: Address that the page is served on.
        token: Secret that other addresses need; None on this machine alone.
        pages: Browsers at once.
        sessions: Returns how many sessions run; one may outlive its browser by the solve that it is at.
        port: Port that the page is served on.
        open_pages: Browsers that are connected.
        mistakes: Budget of messages about mistakes.
        connections: Budget of new connections.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    pages: int = _PAGES
    sessions: Callable[[], int] = lambda: 0
    port: int = 0
    open_pages: int = 0
    mistakes: Bucket = field(default_factory=lambda: Bucket(*_MISTAKES))
    connections: Bucket = field(default_factory=lambda: Bucket(*_CONNECTIONS))

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
        if many or not self._is_own(host):
            return 421, "This page is not served under that name."
        origin = headers.get("Origin")
        if origin is not None and not _is_same(origin, host):
            return 403, "Another site may not use this page."
        if socket and origin is None:
            return 403, "A page must say where it comes from."
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none") and socket:
            return 403, "Another site may not use this page."
        if self.token is not None and not self._has_token(path, headers):
            return 401, "This page needs the token that was printed when it was started."
        if socket and self.full:
            return 503, "There are too many pages open."
        if socket and not self.connections.spend():
            return 429, "Too many new pages at once."
        return None

    @property
    def full(self) -> bool:
        """Whether there are as many browsers, or sessions of browsers that have gone, as there may be."""
        return max(self.open_pages, self.sessions()) >= self.pages

    def cut_off(self) -> None:
        """Make new connections wait, because one had to be closed: it sent too much, or what cannot be decoded."""
        self.connections.left = max(self.connections.left - _PRICE, -_PRICE)

    def _is_own(self, host: str) -> bool:
        """Return whether a Host header names this page: an address or localhost, at its port."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.path or parts.query or parts.fragment or parts.username is not None:
            return False
        if port is not None and self.port and port != self.port:
            return False
        if name == "localhost":
            return is_local(self.host)
        # a bare address cannot be rebound to another machine; with a token, any address of this machine will do
        return name == self.host or (_is_address(name) and (is_local(name) or not is_local(self.host)))

    def _has_token(self, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request carries the token, in its query or in the cookie that the page was given."""
        given = parse_qs(urlsplit(path).query).get("token", [""])[0]
        try:
            cookie = SimpleCookie(headers.get("Cookie", "")).get(_COOKIE)
        except CookieError:
            cookie = None
        return any(
            hmac.compare_digest(value.encode(), (self.token or "").encode())
            for value in (given, cookie.value if cookie else "")
        )


def is_local(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def _is_address(host: str) -> bool:
    """Return whether a host is a bare address."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    """Return whether an Origin header is that of the page itself."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def guarded_server(rules: Rules, port: int) -> ViserServer:
    """Return a viser server that only lets through what the rules allow.

    Args:
        rules: Who may connect; its ``port`` is set to the one that was free.
        port: Port to try first, 0 for any.

    Raises:
        SynoviaError: If viser came up without the guard.
    """
    import viser

    class Server(viser.ViserServer):
        """A server that no message of a page can put on the internet."""

        def request_share_url(self, verbose: bool = True) -> str | None:
            """Return None: a page stays where it is served."""

    # a last message to a browser that has just gone is of no use
    warnings.filterwarnings("ignore", message="Queued a .* on a closed connection", category=UserWarning)
    with _STARTING, _guarded_serve(rules) as used, redirect_stdout(StringIO()):  # viser prints a banner
        server = Server(host=rules.host, port=port, verbose=False)
    if not used:
        server.stop()
        raise SynoviaError(
            "the page cannot be guarded with this viser",
            value=viser.__version__,
            expected="a version that serves through websockets.asyncio.server.serve",
        )
    rules.port = server.get_port()
    return server


@contextmanager
def _guarded_serve(rules: Rules) -> Generator[list[bool]]:
    """Put the guard in place of ``serve``, and yield a list that is no longer empty once it was used."""
    import websockets.asyncio.server as module

    plain, connection = module.serve, _connection_class(rules)
    used: list[bool] = []
    quiet = logging.getLogger("synovia.viewer")  # anybody could fill the terminal with refused connections
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False

    def serve(handler: Any, *args: Any, **options: Any) -> Any:
        """Serve with the guard before the given handler."""
        used.append(True)
        options |= {
            "process_request": _checked(rules, options["process_request"]),
            "create_connection": connection,
            "max_size": _LARGEST,
            "open_timeout": 5,
            "server_header": None,
            "logger": quiet,
        }
        return plain(_counted(rules, handler), *args, **options)

    module.serve = serve  # type: ignore[assignment,misc]
    try:
        yield used
    finally:
        module.serve = plain  # type: ignore[misc]


def _counted(rules: Rules, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the handler of a WebSocket that counts open pages, and makes those wait that send nonsense."""

    async def handle(connection: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(_brief_report(rules))
        if rules.full:  # several were let in while none had come to this line
            await connection.close(1013, "too many pages")
            return
        rules.open_pages += 1
        try:
            await handler(connection)
        except Exception:  # viser could not decode a message
            rules.cut_off()
            raise
        finally:
            rules.open_pages -= 1

    return handle


def _brief_report(rules: Rules) -> Callable[[Any, dict[str, Any]], None]:
    """Return a handler of errors in viser's tasks that prints only a few, so that no client can fill the terminal."""

    def report(loop: Any, context: dict[str, Any]) -> None:
        if not rules.mistakes.spend():
            return
        error = context.get("exception")
        if error is not None and _is_raised_by_viser(error):  # a value that its control cannot take
            text = f"{type(error).__name__}: {error}"
            logging.getLogger("asyncio").error("a page sent what cannot be used: %s", text[:_PRINTED])
        else:
            loop.default_exception_handler(context)

    return report


def _is_raised_by_viser(error: BaseException) -> bool:
    """Return whether an error was raised by viser itself."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == "viser"


def _checked(rules: Rules, then: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the handler of a request that refuses first, and then asks viser's own."""
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    def process(connection: Any, request: Any) -> Any:
        headers = request.headers
        known = {name: headers[name] for name in _READ if len(headers.get_all(name)) == 1}
        many = any(len(headers.get_all(name)) > 1 for name in ("Host", "Origin"))
        socket = headers.get_all("Upgrade") != []
        refused = rules.refusal(request.path, known, socket=socket, many=many)
        if refused is not None:
            status, reason = refused
            text = (reason + "\n").encode()
            plain = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(text)), **_HEADERS}
            return Response(status, http.HTTPStatus(status).phrase, Headers(**plain), text)
        if not socket and request.path.partition("?")[0] not in ("/", "/index.html"):
            return Response(404, "Not Found", Headers(**{"Content-Length": "0"}), b"")  # the page is one file
        answer = then(connection, request)
        if answer is not None:
            for name, value in _HEADERS.items():
                answer.headers[name] = value
            answer.headers["Content-Security-Policy"] = "frame-ancestors 'self' http://127.0.0.1:* http://localhost:*"
            if rules.token is not None:
                answer.headers["Set-Cookie"] = f"{_COOKIE}={rules.token}; Path=/; HttpOnly; SameSite=Strict"
        return answer

    return process


def _connection_class(rules: Rules) -> type:
    """Return the class of connections that are closed when they send too much."""
    from websockets.asyncio.server import ServerConnection
    from websockets.exceptions import ConnectionClosedError

    class Guarded(ServerConnection):
        """A connection with a budget of messages, of bytes and of control frames."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._messages, self._bytes, self._controls = Bucket(*_MESSAGES), Bucket(*_BYTES), Bucket(*_MESSAGES)

        def process_event(self, event: Any) -> None:
            """Take pings and pongs no more often than messages: each one is answered."""
            if getattr(event, "opcode", 0) >= _CONTROL and not self._controls.spend():
                rules.cut_off()
                self.transport.abort()
                return
            super().process_event(event)

        async def recv(self, decode: bool | None = None) -> Any:
            """Return the next message, unless it is one too many."""
            message = await super().recv(decode)
            if self._messages.spend() and self._bytes.spend(len(message)):
                return message
            rules.cut_off()
            await self.close(1008, "too much at once")
            raise ConnectionClosedError(None, None)

    return Guarded
