"""The guide on gradients: its code for PyTorch runs, and what it says is so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from shared_files import shared_data_folder

torch: Any = pytest.importorskip("torch")


@pytest.mark.nightly
@pytest.mark.shared_data
def test_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(shared_data_folder() / "robot" / "ur5e_nomesh.xml", tmp_path / "ur5e.xml")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    text = (REPO / "docs" / "guides" / "gradients.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)), names)
    st = names["st"]
    assert names["losses"][-1] < 0.9 * names["losses"][0]
    robot = names["robot"]
    q = torch.tensor(np.array([robot.random_pose(1000 + seed).q for seed in range(50)]))
    ahead, true = (st.forward(robot, q, ["wrist_3"], offsets=names[name]) for name in ("offsets", "true"))
    assert float((ahead - true).abs().max().detach()) < 1e-8
    wanted = np.array([sy.Pose(names["calibrated"], one.numpy()).transform("wrist_3") for one in q])
    assert np.abs(true[:, 0].numpy() - wanted).max() < 1e-8
    long = names["bones"].norm(dim=1) > 1e-3
    assert float((names["factors"] - names["person"])[long].abs().max().detach()) < 1e-4
