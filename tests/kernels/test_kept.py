"""Files of compiled code: damaged ones are made anew, and where none can be written, those that are there are read."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from synovia.kernels.compiler import cache, compiled, kept

pytestmark = [
    pytest.mark.jit,
    pytest.mark.compiled,
    pytest.mark.skipif(not compiled() or cache.keep is None, reason="kernels are interpreted"),
]


def double(x):
    return x + x


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Calls a kernel as a process anew does, and tells whether its compiled code was kept."""
    import numba

    monkeypatch.setattr(cache, "cache_folder", lambda file: tmp_path / "double-0")
    monkeypatch.setattr(cache, "_warned", [])

    def call(value=2.0):
        kernel = numba.njit(double)
        cache.keep(kernel)
        assert kernel(value) == 2 * value
        return sum(kernel.stats.cache_hits.values()) == 1

    return call


def refuse(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: cache.sealed("of another make"),
    ],
    ids=["empty", "half", "zeros", "bit", "other"],
)
def test_damaged_files_are_compiled_anew(use, tmp_path, damage):
    assert not use()
    assert use()
    (file,) = tmp_path.rglob("*.nbc")
    file.write_bytes(damage(file.read_bytes()))
    assert not use()
    assert use()
    assert list(tmp_path.rglob("*.nbc")) == [file]


def test_a_full_disk_is_told_once_and_leaves_nothing_behind(use, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(Path, "replace", refuse)
    assert not use()
    assert not use()
    assert [record.getMessage().count("SYNOVIA_CACHE_DIR") for record in caplog.records] == [1]
    assert "No space left on device" in caplog.text
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_another_user_compiled_is_read_where_nothing_can_be_written(use, tmp_path, monkeypatch):
    use()
    (tmp_path / "double-0").chmod(0o555)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert use()
    assert not use(np.int64(3)), "another type is compiled"
    (tmp_path / "double-0").chmod(0o755)


def test_types_and_processors_have_files_of_their_own(use, tmp_path, monkeypatch):
    from numba.core.codegen import CPUCodegen

    use()
    use(np.int64(3))
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
    monkeypatch.setattr(CPUCodegen, "magic_tuple", lambda _: ("x86_64", "another", "+none"))
    assert not use()
    assert len(list(tmp_path.rglob("*.nbc"))) == 3


def make(root, name, days):
    """Make a folder of compiled code that was last used so many days ago."""
    folder = root / name
    folder.mkdir()
    (folder / "kernel.nbc").write_bytes(b"code")
    (folder / "kernel.nbc.0123").write_bytes(b"part of a process that was killed")
    then = time.time() - days * 86400.0
    os.utime(folder, (then, then))
    return folder


def version(name, k):
    return f"{name}-{k:016x}"


def test_folders_that_nobody_uses_go_when_a_new_one_is_made(tmp_path):
    used, unused = make(tmp_path, version("tree.step", 1), 20), make(tmp_path, version("tree.step", 2), 40)
    moved = make(tmp_path, version("old_name", 1), 40)
    others = [tmp_path / "holidays", tmp_path / version("photos", 1) / "0.jpg", tmp_path / "notes.nbc"]
    for file in others:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    os.utime(others[1].parent, (0, 0))
    kept.remove_old(make(tmp_path, version("tree.step", 3), 0))
    assert used.exists()
    assert not unused.exists()
    assert not moved.exists()
    assert all(file.exists() for file in others), "what is not ours was removed"


def test_beyond_the_total_size_the_last_used_folders_stay(tmp_path, monkeypatch):
    folders = [make(tmp_path, version(name, k), k) for k in range(1, 6) for name in ("tree.step", "tree.steps")]
    new = make(tmp_path, version("tree.step", 0), 0)
    each = sum(file.stat().st_size for file in new.iterdir())
    monkeypatch.setattr(kept, "SIZE", 5 * each + 1)
    kept.remove_old(new)
    assert [folder.exists() for folder in folders] == [True] * 4 + [False] * 6
    assert new.exists()


def test_two_checkouts_side_by_side_keep_what_they_use(use, tmp_path, monkeypatch):
    """One compiles anew again and again; the other only loads, which counts as use."""
    root = tmp_path

    def choose(k):
        monkeypatch.setattr(cache, "cache_folder", lambda file: root / version("double", k))

    choose(999)
    assert not use()
    theirs = root / version("double", 999)
    monkeypatch.setattr(kept, "SIZE", int(3.5 * sum(file.stat().st_size for file in theirs.iterdir())))
    for k in range(6):
        os.utime(theirs, (time.time() - 2 * 86400.0,) * 2)
        choose(999)
        assert use()
        choose(k)
        assert not use()
    assert theirs.exists()
    assert len(list(root.glob("double-*"))) == 3


LOCKED = """
import sys
from synovia.kernels.compiler import kept
print(kept.lock("a"), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.name != "posix", reason="needs locks of POSIX")
def test_a_lock_is_held_by_one_process_until_it_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", str(tmp_path))
    kept._lock_file.cache_clear()
    command = [sys.executable, "-c", LOCKED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline().strip() == "True"
        assert not kept.lock("a")
        assert kept.lock("b")
        other.kill()
        other.wait()
        assert kept.lock("a")
    for name in ("a", "b"):
        kept.unlock(name)
    kept._lock_file.cache_clear()


def _fail(error):
    def opening(*_):
        raise error

    return opening


@pytest.mark.parametrize("error", [PermissionError(13, "of another user"), OSError(30, "read-only")])
def test_without_a_file_for_locks_each_process_goes_ahead(error, monkeypatch):
    monkeypatch.setattr(kept.os, "open", _fail(error))
    kept._lock_file.cache_clear()
    assert kept.lock("a")
    kept.unlock("a")


def test_processes_that_remove_at_once_do_not_disturb_each_other(tmp_path):
    for k in range(100):
        make(tmp_path, version("tree.step", k), 40 + k)
    new = make(tmp_path, version("tree.step", 200), 0)
    failed = []

    def remove():
        try:
            kept.remove_old(new)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=remove) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert list(tmp_path.iterdir()) == [new]
