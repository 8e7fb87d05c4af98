"""The name of a written file says what is in it: endings that claim more are refused before anything is done."""

import json
from pathlib import Path

import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.jobs.clips import written_endings
from synovia.jobs.hand import RetargetHand
from synovia.jobs.verbs.animate import HoldFeet
from synovia.jobs.verbs.convert import Convert
from synovia.jobs.verbs.edit import Edit
from synovia.jobs.verbs.retarget import Retarget

WALK = Path(__file__).parents[1] / "examples" / "walk.bvh"
ARM = Path(__file__).parents[1] / "examples" / "arm.urdf"


def vrm(path):
    """Write the bundled humanoid as a VRM, in JSON."""
    body = sy.bundled("humanoid")
    sy.save_pose(body.rest_pose(), path.with_suffix(".gltf"))
    data = json.loads(path.with_suffix(".gltf").read_text(encoding="utf-8"))
    hips = next(number for number, node in enumerate(data["nodes"]) if node["name"] == body.roles["hips"])
    data["extensions"] = {"VRMC_vrm": {"specVersion": "1.0", "humanoid": {"humanBones": {"hips": {"node": hips}}}}}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize("source", ["arm7", ARM, "humanoid", ARM.with_name("character.glb"), WALK])
def test_only_a_copy_of_a_vrm_is_a_vrm(tmp_path, source):
    out = tmp_path / "x.VRM"
    assert_refused(run("convert", source, out), "x.VRM", "copy of the VRM", ".glb", ".vrma")
    assert not out.exists()


def test_a_vrm_is_refused_before_the_work(tmp_path):
    out = tmp_path / "x.vrm"
    for ran in (
        run("retarget", WALK, "humanoid", "-o", out),
        run("edit", WALK, "--slice", "0:9", "-o", out),
        run("animate", WALK, "--foot-lock", "-o", out),
    ):
        assert_refused(ran, "copy of the VRM")
    with pytest.raises(sy.errors.FormatError, match="copy of the VRM"):
        sy.save_pose(sy.bundled("arm7").rest_pose(), out)
    assert not out.exists()


def test_copies_of_a_vrm_stay_one(tmp_path):
    source = vrm(tmp_path / "person.vrm")
    body = sy.load_skeleton(source)
    clip = sy.Motion(body, [body.rest_pose().q] * 2, 30.0)
    for name in ("walk.vrm", "walk.glb"):
        sy.save_motion(clip, tmp_path / name)
    sy.save_pose(body.rest_pose(), tmp_path / "pose.vrm")
    assert run("convert", tmp_path / "walk.glb", tmp_path / "again.vrm").code == 0
    for name in ("walk.vrm", "pose.vrm", "again.vrm"):
        assert b"VRMC_vrm" in (tmp_path / name).read_bytes()


def test_a_skeleton_is_not_written_as_a_file_of_loops(tmp_path):
    out = tmp_path / "arm.loops.toml"
    assert_refused(run("convert", ARM, out), "loops of a model", "another name that ends in .toml")
    assert not out.exists()


def test_the_help_of_formats_names_all_that_are_written():
    for verb, more in ((Convert, {"toml"}), (Retarget, set()), (RetargetHand, set()), (HoldFeet, set()), (Edit, set())):
        said = verb.how["format"]
        assert set(said.metavar.split("|")) == {ending[1:] for ending in written_endings()} | more


def test_a_rate_of_zero_is_refused(tmp_path):
    ran = run("retarget", tmp_path / "hand.npz", "humanoid_hands", "--fps", "0")
    assert ran.code == 2
    assert "expected a number above 0" in ran.err
