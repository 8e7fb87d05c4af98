"""The guarded server: viser's server with access checks and limits on the data that a connection may send.

Any web site that is open in the user's browser can reach a server on this machine. The site can open a WebSocket to
127.0.0.1, so the server checks ``Origin``. The site can resolve its own name to 127.0.0.1, so the server checks
``Host``. An address that other machines can reach needs a token, which only the user sees.

viser starts its server through ``websockets.asyncio.server.serve`` and offers no hook. So this module replaces that
function with a checked function while a page starts, and stops a page whose server does not use it.
"""

from __future__ import annotations

import asyncio
import hmac
import http
import ipaddress
import logging
import socket
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from io import StringIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from synovia.errors import InputError, SynoviaError

if TYPE_CHECKING:
    from viser import ViserServer

_COOKIE: Final = "synovia_token"
# Pairs are the rate per second and the burst of a token bucket.
_LARGEST: Final = 2**24  # bytes; largest message, enough for a picture of the page; a drag needs 300 bytes
_MESSAGES: Final = (400.0, 800.0)  # a page sends at most 50 per second for the camera and 20 for each hand
BYTES: Final = (2.0**22, 2.0**24)  # bytes of messages; the burst is the size of one picture of the page
_PAGES: Final = 12  # largest number of connected browsers; each has its own solver
_ERRORS: Final = (0.2, 5.0)  # rate and burst of printed errors
_CONNECTIONS: Final = (1.0, 30.0)  # rate and burst of new connections
_PENALTY: Final = 15.0  # tokens that a misbehaving connection takes from the bucket of new connections
_PRINTED: Final = 160  # largest number of printed characters of an error message
_CONTROL: Final = 8  # WebSocket operation codes from here on are control frames: close, ping, pong

_PORTS: Final = 2**16
_STARTING: Final = threading.Lock()
_READ: Final = ("Host", "Origin", "Cookie", "Sec-Fetch-Site")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(slots=True)
class Bucket:
    """A token bucket: it gains ``rate`` tokens per second and holds at most ``burst``."""

    rate: float
    burst: float
    left: float = field(init=False)
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        """Start full."""
        self.left, self._last = self.burst, time.monotonic()

    def spend(self, amount: float = 1.0) -> bool:
        """Take tokens; return False, and take none, if there are too few."""
        now = time.monotonic()
        self.left = min(self.burst, self.left + (now - self._last) * self.rate)
        self._last = now
        if self.left < amount:
            return False
        self.left -= amount
        return True


@dataclass(slots=True)
class Rules:
    """Rules of access.

    Args:
        host: Address of the server.
        token: Secret that browsers must send; None if the server needs none.
        pages: Largest number of connected browsers.
        sessions: Returns the number of running sessions. A session may outlive its browser by one solve.
        port: Port of the server.
        open_pages: Number of connected browsers.
        errors: Bucket of printed errors.
        connections: Bucket of new connections.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    pages: int = _PAGES
    sessions: Callable[[], int] = lambda: 0
    port: int = 0
    open_pages: int = 0
    errors: Bucket = field(default_factory=lambda: Bucket(*_ERRORS))
    connections: Bucket = field(default_factory=lambda: Bucket(*_CONNECTIONS))

    def refusal(
        self, path: str, headers: Mapping[str, str], *, socket: bool, many: bool = False
    ) -> tuple[int, str] | None:
        """Return HTTP status and reason for a refused request; None for an accepted request.

        Args:
            path: Path of the request with its query.
            headers: Headers of the request, by name.
            socket: Whether the request opens a WebSocket.
            many: Whether ``Host`` or ``Origin`` occurs more than once.
        """
        host = headers.get("Host", "")
        if many or not self._is_own(host):
            return 421, "This page is not served under this host name."
        origin = headers.get("Origin")
        if origin is not None and not _is_same(origin, host):
            return 403, "Another site may not use this page."
        if socket and origin is None:
            return 403, "The request does not say which page it comes from (Origin)."
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
        """Whether the number of browsers, or of running sessions, is at its maximum."""
        return max(self.open_pages, self.sessions()) >= self.pages

    def cut_off(self) -> None:
        """Delay new connections after a connection that sent too much or invalid messages."""
        self.connections.left = max(self.connections.left - _PENALTY, -_PENALTY)

    def _is_own(self, host: str) -> bool:
        """Return whether a Host header is an address of this server or localhost, with its port."""
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
        # no DNS server can redirect a bare address; a server with a token accepts every address of this machine
        return name == self.host.lower() or (_is_address(name) and (is_local(name) or not is_local(self.host)))

    def _has_token(self, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request has the token, in its query or in the cookie that the page sets."""
        given = parse_qs(path.partition("?")[2]).get("token", [])
        with suppress(CookieError):
            cookie = SimpleCookie(headers.get("Cookie", "")).get(_COOKIE)
            given += [] if cookie is None else [unquote(cookie.value)]
        wanted = (self.token or "").encode()
        return any(hmac.compare_digest(value.encode(errors="replace"), wanted) for value in given)


def is_local(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return False


def _is_same(origin: str, host: str) -> bool:
    """Return whether an Origin header is the origin of the page itself."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def guarded_server(rules: Rules, port: int) -> ViserServer:
    """Start a viser server with checks, and return it.

    Args:
        rules: Rules of access; this function sets ``rules.port``.
        port: Port to try first; 0 for any free port.

    Raises:
        SynoviaError: If viser did not use the checked ``serve``.
    """
    import viser

    class Server(viser.ViserServer):
        """A server without viser's public share URL."""

        def request_share_url(self, verbose: bool = True) -> str | None:
            """Return None: this server never asks for a public URL."""

    # viser warns about messages to a browser that has just disconnected
    warnings.filterwarnings("ignore", message="Queued a .* on a closed connection", category=UserWarning)
    with _STARTING, _guarded_serve(rules) as used, redirect_stdout(StringIO()):  # viser prints a banner
        server = Server(host=rules.host, port=port, verbose=False)
    if not used:
        server.stop()
        raise SynoviaError(
            "this version of viser cannot be guarded",
            value=viser.__version__,
            expected="a version that serves through websockets.asyncio.server.serve",
        )
    rules.port = server.get_port()
    return server


def check_address(host: str, port: int) -> None:
    """Check that a server can listen at an address, because viser's server would wait for ever otherwise.

    Raises:
        InputError: If the host is not an address of this machine, or there is no such port.
    """
    if port not in range(_PORTS):
        raise InputError("port", value=port, expected=f"a whole number from 0 to {_PORTS - 1}")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.bind(place)
    except (OSError, UnicodeError) as error:
        raise InputError(
            "host",
            value=host,
            expected="an address of this machine",
            hint="127.0.0.1 serves only browsers on this machine, 0.0.0.0 also those on others",
        ) from error


@contextmanager
def _guarded_serve(rules: Rules) -> Generator[list[bool]]:
    """Replace ``serve`` by a checked function; yield a list that becomes non-empty when the function is called."""
    import websockets.asyncio.server as module

    plain, connection = module.serve, _connection_class(rules)
    used: list[bool] = []
    quiet = logging.getLogger("synovia.viewer")  # refused connections must not fill the terminal
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False

    def serve(handler: Any, host: str, port: int, **options: Any) -> Any:
        """Serve with checks before the given handler; use any free port after viser has tried the last port."""
        used.append(True)
        options |= {
            "process_request": _checked(rules, options["process_request"]),
            "create_connection": connection,
            "max_size": _LARGEST,
            "open_timeout": 5,
            "close_timeout": 1,  # seconds; the reply of a client may follow much unread data
            "server_header": None,
            "logger": quiet,
        }
        return plain(_counted(rules, handler), host, port if port < _PORTS else 0, **options)

    module.serve = serve  # type: ignore[assignment,misc]
    try:
        yield used
    finally:
        module.serve = plain  # type: ignore[misc]


def _counted(rules: Rules, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a WebSocket handler that counts open pages and slows down clients that send invalid messages."""

    async def handle(connection: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(_brief_report(rules))
        if rules.full:  # several requests may pass ``refusal`` before the first is counted
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
    """Return an error handler for viser's tasks that limits the rate of printed errors."""

    def report(loop: Any, context: dict[str, Any]) -> None:
        if not rules.errors.spend():
            return
        error = context.get("exception")
        if error is not None and _is_raised_by_viser(error):  # the browser sent an invalid value for a control
            text = f"{type(error).__name__}: {error}"
            logging.getLogger("asyncio").error("a page sent an invalid message: %s", text[:_PRINTED])
        else:
            loop.default_exception_handler(context)

    return report


def _is_raised_by_viser(error: BaseException) -> bool:
    """Return whether an error was raised by viser itself."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(modules) and modules[-1].partition(".")[0] == "viser"


def _checked(rules: Rules, then: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a request handler that applies the rules, then calls viser's own handler."""
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
            return Response(404, "Not Found", Headers(**{"Content-Length": "0"}), b"")  # the page is a single file
        answer = then(connection, request)
        if answer is not None:
            for name, value in _HEADERS.items():
                answer.headers[name] = value
            answer.headers["Content-Security-Policy"] = "frame-ancestors 'self' http://127.0.0.1:* http://localhost:*"
            if rules.token is not None:
                answer.headers["Set-Cookie"] = (
                    f"{_COOKIE}={quote(rules.token, safe='')}; Path=/; HttpOnly; SameSite=Strict"
                )
        return answer

    return process


def _connection_class(rules: Rules) -> type:
    """Return a connection class that closes connections that send too much."""
    from websockets.asyncio.server import ServerConnection
    from websockets.exceptions import ConnectionClosedError

    class Guarded(ServerConnection):
        """A connection with token buckets for messages, bytes and control frames."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._messages, self._bytes, self._controls = Bucket(*_MESSAGES), Bucket(*BYTES), Bucket(*_MESSAGES)

        def process_event(self, event: Any) -> None:
            """Limit control frames such as pings, because the server answers each one."""
            if getattr(event, "opcode", 0) >= _CONTROL and not self._controls.spend():
                rules.cut_off()
                self.transport.abort()
                return
            super().process_event(event)

        async def recv(self, decode: bool | None = None) -> Any:
            """Return the next message; close the connection if it exceeds the limits."""
            message = await super().recv(decode)
            if self._messages.spend() and self._bytes.spend(len(message)):
                return message
            rules.cut_off()
            await self.close(1008, "too much at once")
            raise ConnectionClosedError(None, None)

    return Guarded
