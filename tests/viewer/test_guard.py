"""Who may use the live page, and how much: over real sockets."""

import asyncio
import gc
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("viser")
websockets = pytest.importorskip("websockets")

import synovia as sy  # noqa: E402
from browsing import until  # noqa: E402
from synovia.viewer import View, view  # noqa: E402
from synovia.viewer.editing import engine  # noqa: E402
from synovia.viewer.editing.session import Session  # noqa: E402
from synovia.viewer.editing.worker import (  # noqa: E402
    SESSION,
    Background,
    Worker,
)
from synovia.viewer.serving.server import Bucket, Rules, is_local  # noqa: E402

PATIENCE = 120.0  # seconds

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def page() -> Iterator[View]:
    with view("arm7", port=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_grudge(page: View) -> None:
    """Every test begins with a guard that was not provoked."""
    page.rules.connections.left = page.rules.connections.burst


def ask(page: View, text: str) -> bytes:
    """What a raw request gets."""
    with socket.create_connection(("127.0.0.1", page.rules.port), timeout=60) as plain:
        plain.sendall(text.encode(errors="surrogateescape"))
        got = b""
        while len(got) < 65536:
            try:
                part = plain.recv(65536)
            except TimeoutError:
                break
            if not part:
                break
            got += part
    return got


def get(page: View, path: str = "/", host: str | None = None, **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{page.rules.port}'}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ask(page, "\r\n".join(lines) + "\r\n\r\n")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_the_page_is_served_to_this_machine(page: View) -> None:
    answer = get(page)
    assert status(answer) == 200
    assert b"nosniff" in answer
    assert status(get(page, host=f"localhost:{page.rules.port}")) == 200


@pytest.mark.parametrize(
    "host", ["evil.com", "evil.com:8080", "127.0.0.1.evil.com", "a@127.0.0.1", "127.0.0.1:1", "[::2]", ""]
)
def test_foreign_hosts_are_refused(page: View, host: str) -> None:
    assert status(get(page, host=host or " ")) in (400, 421)


def test_foreign_origins_are_refused(page: View) -> None:
    for origin in ("http://evil.com", "null", "http://127.0.0.1:1", f"http://127.0.0.1.evil.com:{page.rules.port}"):
        assert status(get(page, Origin=origin)) == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/index.html/../../../_viser.py",
        "/..\\..\\_viser.py",
        "/package.json",
        "http://127.0.0.1/etc/passwd",
        "/\x00",
    ],
)
def test_no_other_file_is_served(page: View, path: str) -> None:
    answer = get(page, path)
    assert status(answer) in (0, 400, 404)
    assert b"root:" not in answer
    assert b"import" not in answer


def test_two_hosts_are_none(page: View) -> None:
    text = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{page.rules.port}\r\nHost: evil.com\r\n\r\n"
    assert status(ask(page, text)) in (400, 421)


async def _open(page: View, **options: object) -> object:
    import viser

    port = page.rules.port
    options.setdefault("origin", f"http://127.0.0.1:{port}")
    options.setdefault("close_timeout", 0.5)  # of one that does not read, so that it does not hear the answer
    return await websockets.connect(
        f"ws://127.0.0.1:{port}/", subprotocols=[f"viser-v{viser.__version__}"], max_size=None, **options
    )


async def _closed(socket: object) -> int:
    """Read to the end and return the code that the server closed with."""
    with suppress(websockets.exceptions.ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE)
    return socket.close_code


async def _until(what: Callable[[], object], why: str) -> None:
    """Wait until something holds; hanging is all that is measured."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, why
        await asyncio.sleep(0.05)


def _camera() -> bytes:
    return msgspec.msgpack.encode(
        {
            "type": "ViewerCameraMessage",
            "wxyz": [1.0, 0.0, 0.0, 0.0],
            "position": [0.0, 0.0, 3.0],
            "fov": 1.0,
            "near": 0.01,
            "far": 100.0,
            "image_height": 480,
            "image_width": 640,
            "look_at": [0.0, 0.0, 0.0],
            "up_direction": [0.0, 0.0, 1.0],
        }
    )


def _drag(owner: int, key: int, x: float, phase: str = "update") -> bytes:
    return msgspec.msgpack.encode(
        {
            "type": "SceneNodeDragMessage",
            "phase": phase,
            "name": f"/targets/{key}",
            "instance_index": None,
            "start_position": [0.0, 0.0, 0.0],
            "start_screen_pos": [0.5, 0.5],
            "end_position": [x, 0.0, 0.0],
            "end_screen_pos": [0.5, 0.5],
            "button": "left",
            "modifier": None,
            "owner": str(owner),
        }
    )


def test_sockets_of_other_sites_are_refused(page: View) -> None:
    async def go() -> None:
        for origin in (None, "http://evil.com", "null"):
            with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
                await _open(page, origin=origin)
            assert refused.value.response.status_code == 403

    asyncio.run(go())


SPOILT = {
    "noise": b"\xff\x00nonsense" * 9,
    "text": "hello",
    "no map": msgspec.msgpack.encode([1, 2, 3]),
    "wrong fields": msgspec.msgpack.encode({"type": "SceneNodeDragMessage", "name": 7}),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_not_understood_ends_the_connection(page: View, what: str) -> None:
    async def go() -> int:
        async with await _open(page) as socket:
            await socket.send(SPOILT[what])
            return await _closed(socket)

    assert asyncio.run(go()) == 1011


def test_a_message_that_is_too_large_ends_the_connection_before_it_is_read(page: View) -> None:
    async def go() -> int:
        async with await _open(page) as socket:
            socket.transport.write(bytes((0x82, 0xFF)) + (2**24 + 1).to_bytes(8, "big") + bytes(4))  # a frame's head
            return await _closed(socket)

    assert asyncio.run(go()) == 1009


def test_a_value_that_its_control_cannot_take_is_told_in_short(page: View, caplog: pytest.LogCaptureFixture) -> None:
    control = page.server.gui.add_slider("number", 0.0, 1.0, 0.1, 0.5)
    odd = {"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": {"value": "x" * 5000}}

    async def go() -> None:
        async with await _open(page) as socket:
            await socket.send(msgspec.msgpack.encode(odd))
            # a task tells its mistake when nobody holds it any more
            await _until(lambda: gc.collect() >= 0 and caplog.text, "nothing was told")

    asyncio.run(go())
    control.remove()
    assert "invalid message: ValueError: could not convert" in caplog.text
    assert "Traceback" not in caplog.text
    assert len(caplog.text) < 400


def test_a_flood_of_pings_is_cut_off(page: View) -> None:
    async def go() -> int:
        async with await _open(page, ping_interval=None) as socket:
            with suppress(websockets.exceptions.ConnectionClosed, websockets.exceptions.InvalidState):
                for _ in range(20_000):
                    socket.protocol.send_ping(b"x")
                    socket.send_data()
                    await asyncio.sleep(0)
            return await _closed(socket)

    assert asyncio.run(go()) == 1006


def test_no_more_pages_open_than_allowed_even_at_once(page: View) -> None:
    async def go() -> None:
        await _until(lambda: page.rules.open_pages == 0, "pages of tests before stay open")
        page.rules.pages = 2
        try:
            sockets = await asyncio.gather(*(_open(page) for _ in range(6)), return_exceptions=True)
            still = lambda: [one for one in sockets if not isinstance(one, Exception) and one.close_code is None]  # noqa: E731
            await _until(lambda: len(still()) <= 2, "more pages stay open than allowed")
            await asyncio.sleep(0.3)
            assert len(still()) == 2
            for one in still():
                await one.close()
        finally:
            page.rules.pages = 12

    asyncio.run(go())


def test_no_message_puts_a_page_on_the_internet(page: View) -> None:
    async def go() -> None:
        async with await _open(page) as socket:
            await socket.send(msgspec.msgpack.encode({"type": "ShareUrlRequest"}))
            await asyncio.sleep(0.3)
            await socket.ping()

    asyncio.run(go())
    assert page.server._share_tunnel is None


def test_a_flood_is_cut_off_while_a_good_page_goes_on(page: View) -> None:
    """The good page's drag goes on to its end while a stranger pours messages in; the stranger is cut off."""

    async def flood() -> int:
        async with await _open(page) as socket:
            message = _camera()
            with suppress(websockets.exceptions.ConnectionClosed):
                for _ in range(100_000):
                    await socket.send(message)
            return await _closed(socket)

    async def drain(socket: object) -> None:
        async for _ in socket:
            pass

    async def go() -> None:
        before = set(page.pages)
        async with await _open(page) as good:
            reading = asyncio.create_task(drain(good))
            await good.send(_camera())
            await _until(lambda: set(page.pages) - before, "the page did not open")
            mine = max(set(page.pages) - before)
            await _until(lambda: page.pages[mine].worker.frames > 0, "nothing was solved")
            session = page.pages[mine].session
            key = session.goals.editors[0].key
            await asyncio.sleep(0.5)
            place = session.goals.editors[0].position.copy()
            stranger = asyncio.create_task(flood())
            await good.send(_drag(mine, key, 0.0, "start"))
            for i in range(1, 21):
                await good.send(_drag(mine, key, 0.005 * i))
                await asyncio.sleep(0.05)
            assert await stranger in (1006, 1008)  # the reason is lost where the stranger's system resets first
            await good.send(_drag(mine, key, 0.1, "end"))
            dragged = place + np.array((0.1, 0.0, 0.0))
            await _until(
                lambda: np.allclose(session.goals.editors[0].position, dragged, atol=1e-6), "the drag was cut off"
            )
            reading.cancel()

    asyncio.run(go())


def test_other_addresses_need_the_token() -> None:
    with view("arm7", host="0.0.0.0", port=0) as running:
        assert running.rules.token in running.url
        assert status(get(running)) == 401
        assert status(get(running, "/?token=wrong")) == 401
        good = get(running, f"/?token={running.rules.token}")
        assert status(good) == 200
        assert b"HttpOnly" in good
        assert b"SameSite=Strict" in good
        assert status(get(running, Cookie=f"synovia_token={running.rules.token}")) == 200


def test_an_empty_token_is_none() -> None:
    with view("arm7", host="0.0.0.0", port=0, token="") as running:
        assert "?token=" in running.url
        assert status(get(running)) == 401
    with view("arm7", port=0, token="") as running:
        assert "token" not in running.url
        assert status(get(running)) == 200


def test_a_token_may_have_any_characters() -> None:
    with view("arm7", host="0.0.0.0", port=0, token="a+b &c;d=é") as running:
        answer = get(running, running.url.split(str(running.rules.port))[1])
        assert status(answer) == 200
        cookie = answer.split(b"Set-Cookie: ")[1].split(b";")[0].decode()
        assert status(get(running, Cookie=cookie)) == 200
        assert status(get(running, Cookie='synovia_token="\udcff"')) == 401
        assert status(get(running, "/?token=\udcff")) == 401
        assert status(get(running, "//[?token=a")) == 401


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 on this machine")
def test_the_address_of_a_page_for_ipv6_leads_to_it() -> None:
    from urllib.request import urlopen

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with view("arm7", host="::", port=0) as running, urlopen(running.url, timeout=60) as answer:
        assert answer.status == 200


def test_the_name_of_a_host_has_no_case() -> None:
    rules = Rules(host="My-Machine.local", port=8080)
    assert rules.refusal("/", {"Host": "my-machine.local:8080"}, socket=False) is None
    assert rules.refusal("/", {"Host": "other.local:8080"}, socket=False) is not None
    assert is_local("LocalHost")


def test_two_browsers_keep_their_own_state(page: View) -> None:
    async def go() -> None:
        async with await _open(page) as one, await _open(page) as two:
            before = set(page.pages)
            for socket in (one, two):
                await socket.send(_camera())
            await _until(lambda: len(set(page.pages) - before) == 2, "the pages did not open")
            a, b = (page.pages[key].session for key in sorted(set(page.pages) - before))
            a.goals.add("pose", "joint4")
            a.body.set_root("free")
            assert len(b.goals.editors) == 1
            assert b.body.mode == "fixed"

    asyncio.run(go())


def _left(page: View) -> tuple[int, int]:
    """Return the sessions of a page, and the threads that solve one."""
    return len(page.pages), page._background.running(SESSION)


def test_a_browser_that_goes_while_its_page_is_made_leaves_nothing(page: View, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: _left(page) == (0, 0), why="earlier browsers are still there")
    begun, gone, given = threading.Event(), threading.Event(), threading.Event()
    opening = page._opening

    def slow() -> object:
        begun.set()
        gone.wait(PATIENCE)
        return opening.make()

    def give(*arguments: object) -> object:
        made = opening.give(*arguments)
        given.set()
        return made

    monkeypatch.setattr(page, "_opening", replace(opening, make=slow, give=give))

    async def go() -> None:
        async with await _open(page) as socket:
            await socket.send(_camera())
            while not begun.is_set():
                await asyncio.sleep(0.02)
        while page.rules.open_pages:
            await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(go(), PATIENCE))
    gone.set()
    until(lambda: given.is_set() and _left(page) == (0, 0), why="a session was left behind")


def test_quick_visits_leave_no_session_and_no_thread(page: View) -> None:
    """Forty browsers, five at once, gone after up to 0.8 s: with or without a word, with or without a good-bye."""
    chance = random.Random(5)

    async def visit(free: asyncio.Semaphore) -> None:
        async with free:
            page.rules.connections.left = page.rules.connections.burst
            socket = await _open(page)
            if chance.random() < 0.9:
                await socket.send(_camera())
            await asyncio.sleep(chance.uniform(0.0, 0.8) * chance.choice((0.2, 1.0)))
            if chance.random() < 0.5:
                await socket.close()
            else:
                socket.transport.abort()

    async def go(count: int) -> None:
        free = asyncio.Semaphore(5)
        await asyncio.gather(*(visit(free) for _ in range(count)))

    asyncio.run(go(10))  # what the server itself keeps
    until(lambda: _left(page) == (0, 0), why="the first browsers are still there")
    threads = threading.active_count()
    asyncio.run(go(40))
    until(lambda: _left(page) == (0, 0) and page.rules.open_pages == 0, why=f"left behind: {_left(page)}")
    until(lambda: threading.active_count() <= threads, why="threads were left behind")


def test_a_session_that_waits_for_the_compiler_can_be_called_off() -> None:
    """One thread compiles; the others would wait for it for as long as it takes, though their browsers have gone."""
    session = Session(sy.bundled("arm7"))
    session.goals.add("position", "tool")
    background = Background()
    with engine._FIRST_PACK:
        workers = [Worker(session.state, lambda frame: None, background) for _ in range(3)]
        assert background.running(SESSION) == 3
        for worker in workers:
            worker.stop()
        until(lambda: background.running(SESSION) == 0, why="the threads wait for what they cannot have")
    assert all(worker.engine.ik is None for worker in workers)


@pytest.mark.slow
def test_a_process_ends_only_after_what_the_page_compiles() -> None:
    """The compiler dies of being destroyed while it works, so the end of the script waits for it."""
    script = (
        "import threading, time\n"
        "from synovia.viewer.live import View, view\n"
        "page = view('arm7', port=0)\n"
        "begun = threading.Event()\n"
        "def compile():\n"
        "    begun.set()\n"
        "    time.sleep(0.5)\n"
        "    print('ended')\n"
        "page._background.start('compile', compile)\n"
        "begun.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "ended", "")


def test_rules_by_themselves() -> None:
    rules = Rules(port=8080)
    good = {"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"}
    assert rules.refusal("/", good, socket=True) is None
    assert rules.refusal("/", {**good, "Sec-Fetch-Site": "cross-site"}, socket=True) is not None
    assert rules.refusal("/", {**good, "Host": "[::1]:8080", "Origin": "http://[::1]:8080"}, socket=True) is None
    rules.open_pages = rules.pages
    assert rules.refusal("/", good, socket=True)[0] == 503
    rules.open_pages, rules.sessions = 0, lambda: 12
    assert rules.refusal("/", good, socket=True)[0] == 503  # their browsers have gone, but they still solve
    rules.sessions = lambda: 11
    assert rules.refusal("/", good, socket=True) is None
    for _ in range(3):
        rules.cut_off()
    assert rules.refusal("/", good, socket=True)[0] == 429
    bucket = Bucket(0.0, 3.0)
    assert [bucket.spend() for _ in range(4)] == [True, True, True, False]
    bucket.rate = 1000.0
    time.sleep(0.01)
    assert bucket.spend()


def test_a_page_that_cannot_be_made_is_refused_before_it_opens() -> None:
    for arguments, error in (
        ({"model": "no such file.glb"}, sy.errors.FileError),
        ({"model": 7}, sy.InputError),
        ({"model": "arm7", "root": "sideways"}, sy.InputError),
        ({"model": "arm7", "solver": "nothing"}, sy.errors.UnknownNameError),
        ({"model": "arm7", "goals": sy.PositionGoal("nothing")}, sy.errors.UnknownNameError),
        ({"model": "arm7", "clip": 3}, sy.InputError),
        ({"model": "arm7", "goals": ["tool"]}, sy.InputError),
        ({"model": "arm7", "goals": 7}, sy.InputError),
        ({"model": "arm7", "tolerance": (0.0, 0.1)}, sy.InputError),
        ({"model": sy.Motion(sy.bundled("arm7"), np.zeros((0, 7)), 30.0)}, sy.InputError),
    ):
        with pytest.raises(error):
            view(**arguments, port=0)


@pytest.mark.parametrize("host", ["999.1.1.1", "192.0.2.7", ""])
def test_an_address_of_another_machine_is_refused_at_once(host: str) -> None:
    with pytest.raises(sy.InputError, match="an address of this machine"):
        view("arm7", host=host, port=0)


@pytest.mark.parametrize("port", [2**16, -1, "x", 0.5])
def test_a_port_that_does_not_exist_is_refused_at_once(port: object) -> None:
    with pytest.raises(sy.InputError, match="port"):
        view("arm7", port=port)


def test_after_the_last_port_any_port_will_do() -> None:
    with suppress(OSError), socket.create_server(("127.0.0.1", 2**16 - 1)), view("arm7", port=2**16 - 1) as running:
        assert status(get(running)) == 200


def test_a_browser_sends_files_more_slowly_than_the_server_allows() -> None:
    from synovia.viewer.page.style import UPLOAD
    from synovia.viewer.serving.server import BYTES

    assert UPLOAD["rate"] < BYTES[0]
    assert UPLOAD["burst"] < BYTES[1]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals here")
def test_a_page_that_a_service_manager_ends_leaves_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "synovia", "view", "arm7", "--port", "0"]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as process:
        assert process.stdout.readline().startswith("http://")
        assert list(tmp_path.glob("synovia-view-*"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())
