"""What the benchmarks stand on: the arm that they write, the table of a first visit, a gate that noise cannot fool."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = ("adapters", "chain", "common", "gate", "minutes", "panda", "run")


@pytest.fixture
def script(monkeypatch, tmp_path):
    """Loads a script of the benchmarks, whose results go to a folder of the test's own."""
    monkeypatch.setenv("SYNOVIA_RESULTS", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(FOLDER / "peers"), str(FOLDER), *sys.path])
    yield importlib.import_module
    for name in SCRIPTS:
        sys.modules.pop(name, None)


def test_the_arm_that_is_written_is_the_maker_s(script, shared_data, tmp_path):
    panda = script("panda")
    written = panda.Arm(panda.write_panda(tmp_path / "panda.urdf"))
    real = panda.Arm(shared_data / "robot" / "panda.urdf")
    q = np.random.default_rng(0).uniform(real.low, real.high, (50, 7))
    np.testing.assert_allclose(written.forward(q), real.forward(q), rtol=0, atol=1e-12)
    assert written.names == real.names
    assert (written.low == real.low).all()
    assert (written.high == real.high).all()


def test_the_first_five_minutes_become_a_table(script, monkeypatch, tmp_path):
    minutes = script("minutes")
    figures = {"installing_s": 9.0, "size_mib": 420.0, "import_s": 0.03, "cold_s": 7.0, "warm_s": 0.7}

    def measure(name, urdf, rounds):
        if name == "optik":
            raise RuntimeError("no wheel")
        return figures

    monkeypatch.setattr(minutes, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["minutes.py", "--only", "synovia", "optik"])
    assert minutes.main() == 0
    text = (tmp_path / "minutes.md").read_text()
    assert "| synovia " in text
    assert "optik" not in text.split("\n\n", 2)[2]


def test_a_kernel_that_was_disturbed_is_measured_again_and_a_slow_one_stays_slow(script, monkeypatch):
    gate = script("gate")
    now = [0.0]
    made = []

    def kernels():
        made.append(True)
        disturbed = 9.0 if len(made) < 3 else 1.0
        return {
            name: lambda took=took: now.__setitem__(0, now[0] + took)
            for name, took in (("good", 1.0), ("disturbed", disturbed), ("slow", 3.0))
        }

    monkeypatch.setattr(gate, "kernels", kernels)
    monkeypatch.setattr(gate, "reference", lambda n: now.__setitem__(0, now[0] + 1.0))
    monkeypatch.setattr(gate.time, "thread_time", lambda: now[0])
    found = gate.ratios(2, {"good": 1.25, "disturbed": 1.25, "slow": 1.25})
    assert found == {"good": 1.0, "disturbed": 1.0, "slow": 3.0}
    assert len(made) == 1 + gate.AGAIN
