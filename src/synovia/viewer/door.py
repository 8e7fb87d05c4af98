"""viser's server behind the guard: every connection is checked before viser sees it.

viser starts its server through ``websockets.asyncio.server.serve`` and offers no hook. While a page starts, that name
stands for ``serve`` with our checks put in; a page whose server came up without them is stopped at once.
"""

from __future__ import annotations

import asyncio
import http
import logging
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import msgspec

from synovia.errors import SynoviaError
from synovia.viewer.guard import COOKIE, Rules

if TYPE_CHECKING:
    from viser import ViserServer

_STARTING: Final = threading.Lock()
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Messages that a page may send. Left out: sharing the page through a server on the internet, and uploading files.
_HEARD: Final = frozenset(
    {
        "CommandTriggerMessage",
        "FileTransferPartAck",
        "GetRenderResponseMessage",
        "GuiButtonHoldMessage",
        "GuiFormDirtyMessage",
        "GuiFormSubmitMessage",
        "GuiUpdateMessage",
        "SceneNodeClickMessage",
        "SceneNodeDragMessage",
        "ScenePointerMessage",
        "TransformControlsDragEndMessage",
        "TransformControlsDragStartMessage",
        "TransformControlsUpdateMessage",
        "ViewerCameraMessage",
    }
)
_SAID: Final = 160  # characters of an error message that are printed
_SIGNS: Final = 8  # WebSocket operation codes from here on are control frames: close, ping, pong
_PICTURE: Final = 2**24  # bytes of a picture of the page; the largest message there is


def guarded_server(rules: Rules, port: int) -> ViserServer:
    """Return a viser server that only lets through what the rules allow.

    Args:
        rules: Who may connect; its ``port`` is set to the one that was free.
        port: Port to try first, 0 for any.

    Raises:
        SynoviaError: If viser came up without the guard.
    """
    import viser

    # a page's last words to a browser that has just gone are no one's concern
    warnings.filterwarnings("ignore", message="Queued a .* on a closed connection", category=UserWarning)
    with _STARTING, _in_place(rules) as used, redirect_stdout(StringIO()):  # viser prints a banner
        server = viser.ViserServer(host=rules.host, port=port, verbose=False)
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
def _in_place(rules: Rules) -> Generator[list[bool]]:
    """Put the guard in place of ``serve``, and tell whether it was used."""
    import websockets.asyncio.server as module

    plain, connection = module.serve, _connection_class(rules)
    used: list[bool] = []

    def serve(handler: Any, *args: Any, **options: Any) -> Any:
        """Serve with the guard before the given handler."""
        used.append(True)
        options["process_request"] = _checked(rules, options["process_request"])
        options["create_connection"] = connection
        options["max_size"] = _PICTURE
        options["open_timeout"] = 5
        options["server_header"] = None
        options["logger"] = _quiet()
        return plain(_counted(rules, handler), *args, **options)

    module.serve = serve  # type: ignore[assignment,misc]
    try:
        yield used
    finally:
        module.serve = plain  # type: ignore[misc]


def _quiet() -> logging.Logger:
    """Return a logger that drops what is logged about refused connections: anybody could fill the terminal with it."""
    logger = logging.getLogger("synovia.viewer")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _counted(rules: Rules, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the handler of a WebSocket that counts open pages."""

    async def handle(connection: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(_noted(rules))
        if rules.full:  # several were let in while none had come to this line
            await connection.close(1013, "too many pages")
            return
        rules.open_pages += 1
        try:
            await handler(connection)
        finally:
            rules.open_pages -= 1

    return handle


def _noted(rules: Rules) -> Callable[[Any, dict[str, Any]], None]:
    """Return a handler of errors in viser's tasks that prints only a few: a stranger must not fill the terminal."""

    def note(loop: Any, context: dict[str, Any]) -> None:
        if not rules.mistakes.spend():
            return
        error = context.get("exception")
        if error is not None and _within_viser(error):  # a value that its control cannot take, as long as it may be
            told = f"{type(error).__name__}: {error}"
            logging.getLogger("asyncio").error("a page sent what cannot be used: %s", told[:_SAID])
        else:
            loop.default_exception_handler(context)

    return note


def _within_viser(error: BaseException) -> bool:
    """Return whether a mistake was raised by viser itself."""
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
        if not socket and _path(request.path) not in ("/", "/index.html"):
            return Response(404, "Not Found", Headers(**{"Content-Length": "0"}), b"")  # the page is one file
        answer = then(connection, request)
        if answer is not None:
            for name, value in _HEADERS.items():
                answer.headers[name] = value
            answer.headers["Content-Security-Policy"] = "frame-ancestors 'self' http://127.0.0.1:* http://localhost:*"
            if rules.token is not None:
                answer.headers["Set-Cookie"] = f"{COOKIE}={rules.token}; Path=/; HttpOnly; SameSite=Strict"
        return answer

    return process


def _path(target: str) -> str:
    """Return the path of what is asked for."""
    return target.partition("?")[0]


_READ: Final = ("Host", "Origin", "Cookie", "Sec-Fetch-Site")


class _Envelope(msgspec.Struct):
    """The part of every message that says what it is."""

    type: str


class _Update(msgspec.Struct, forbid_unknown_fields=True):
    """What a control may change: its value. viser would set any attribute of the control by its name."""

    value: Any


class _Control(msgspec.Struct):
    """A change of a control."""

    updates: _Update


def _connection_class(rules: Rules) -> type:
    """Return the class of connections that hear no more than the rules allow."""
    from viser._messages import Message  # viser has no public way to read a message
    from websockets.asyncio.server import ServerConnection
    from websockets.exceptions import ConnectionClosedError

    envelope, control = msgspec.msgpack.Decoder(_Envelope), msgspec.msgpack.Decoder(_Control)

    class Guarded(ServerConnection):
        """A connection that is closed when it sends too much, or what cannot be decoded."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._messages, self._bytes = rules.buckets()
            self._signs = rules.buckets()[0]

        def process_event(self, event: Any) -> None:
            """Hear pings and pongs no more often than messages: each one is answered."""
            if getattr(event, "opcode", 0) >= _SIGNS and not self._signs.spend():
                rules.cut_off()
                self.transport.abort()
                return
            super().process_event(event)

        async def recv(self, decode: bool | None = None) -> Any:
            """Return the next message, after the checks."""
            while True:
                raw = await super().recv(decode)
                code, reason, kind = 0, "", ""
                if not isinstance(raw, bytes):
                    code, reason = 1003, "not understood"
                elif not self._messages.spend():
                    code, reason = 1008, "too many messages"
                else:
                    try:
                        kind = envelope.decode(raw).type
                        if len(raw) > rules.largest and kind != "GetRenderResponseMessage":
                            code, reason = 1009, "message too large"
                        elif not self._bytes.spend(len(raw)):
                            code, reason = 1008, "too much at once"
                        elif kind in _HEARD:
                            Message.deserialize(raw)
                            if kind == "GuiUpdateMessage":
                                control.decode(raw)
                    except Exception:  # noqa: BLE001 - whatever a stranger's bytes make of a decoder
                        code, reason = 1007, "not understood"
                if code:
                    rules.cut_off()
                    await self.close(code, reason)
                    raise ConnectionClosedError(None, None)
                if kind in _HEARD:
                    return raw

    return Guarded
