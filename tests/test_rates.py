"""Frames and rate of a file are those of the clip, at any rate, as its public reader finds them."""

import json
import re

import numpy as np
import pytest

import synovia as sy
from synovia.io.gltf.write import NewClip


def clip(fps, frames=4):
    arm = sy.bundled("arm7")
    return sy.Motion(arm, np.array([arm.random_pose(seed).q for seed in range(frames)]), fps)


@pytest.mark.parametrize("fps", [1e-4, 0.1, 0.5, 1.0, 29.97, 120.0, 2500.0, 1e5])
@pytest.mark.parametrize("ending", [".fbx", ".glb", ".bvh", ".npz"])
def test_any_rate_comes_back(tmp_path, ending, fps):
    if ending == ".fbx":
        pytest.importorskip("ufbx")
    own, path = clip(fps), tmp_path / f"clip{ending}"
    sy.save_motion(own, path, verify=True)
    back = sy.load_motion(path)
    assert len(back) == len(own)
    assert back.fps == pytest.approx(fps, rel=1e-6)


@pytest.mark.parametrize(
    ("fps", "frames", "least", "most"), [(1e6, 4, "3e-08", "3.69e+05"), (1e-6, 400, "4e-06", ".*")]
)
def test_rates_that_the_times_of_an_fbx_cannot_hold_are_refused(tmp_path, fps, frames, least, most):
    one = clip(fps)
    long = sy.Motion(one.skeleton, np.resize(one.q, (frames, one.skeleton.nq)), fps)
    most = most if most == ".*" else re.escape(most)
    with pytest.raises(sy.InputError, match=rf"frame rate: expected {least} to {most} .* for {frames} frames"):
        sy.save_motion(long, tmp_path / "clip.fbx")
    assert not (tmp_path / "clip.fbx").exists()


def test_frames_that_the_times_of_a_gltf_cannot_tell_apart_are_refused():
    with pytest.raises(sy.InputError, match="too close together for a glTF"):
        NewClip({}, "clip", 4096.0 + np.arange(3) / 1e5, 0)


def test_verify_sees_the_frames_that_a_reader_finds(tmp_path):
    own, path = clip(0.5), tmp_path / "clip.gltf"
    sy.save_motion(own, path)
    assert sy.formats.verify_file(own, path).holds
    data = json.loads(path.read_text(encoding="utf-8"))
    del data["animations"][0]["extras"]  # as in a file of another program, whose keys are not frames
    path.write_text(json.dumps(data), encoding="utf-8")
    assert "181 frames instead of 4" in sy.formats.verify_file(own, path).report()
    data["animations"] = []
    path.write_text(json.dumps(data), encoding="utf-8")
    assert "no motion" in sy.formats.verify_file(own, path).report()
