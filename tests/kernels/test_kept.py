"""Files of compiled code: damaged ones are made anew, and where none can be written, those that are there are read."""

from pathlib import Path

import numpy as np
import pytest

from synovia.kernels.compiler import cache, jit

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not jit.compiled() or cache.keep is None, reason="kernels are interpreted"),
]


def double(x):
    return x + x


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Calls a kernel as a process anew does, and tells whether its compiled code was kept."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "double-0"))
    monkeypatch.setattr(cache, "_told", [])

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
