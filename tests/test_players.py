"""Saved files as the programs that read them show them: clips after one another, heights that players divide by."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import readback
import synovia as sy
from synovia.io.load import load_motions

HANDS = ("left_hand", "right_upper_arm", "right_hand")


def clip_of(body, name, moving, *, seed=0, frames=4, fps=24.0):
    """A clip in which some joints turn and all else is at rest."""
    rng = np.random.default_rng(seed)
    q = np.tile(body.rest_q, (frames, 1))
    for joint in moving:
        turns = rng.normal(size=(frames, 4)) * 0.3 + (0, 0, 0, 1)
        q[:, body.q_slice(joint)] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    return sy.Motion(body, q, fps, name=name)


def content_of(path):
    data = Path(path).read_bytes()
    (size,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[20 : 20 + size]), data[20 + size :]


def rewrite(path, change):
    """Change the JSON of a GLB."""
    content, rest = content_of(path)
    change(content)
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    head = b"glTF" + struct.pack("<IIII", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A)
    Path(path).write_bytes(head + text + rest)


def without(clip, keep):
    """A change of a GLB: a clip keeps only the channels of some nodes, as exporters leave out what is at rest."""

    def change(content):
        for animation in content["animations"]:
            if animation["name"] == clip:
                names = [node.get("name") for node in content["nodes"]]
                animation["channels"] = [c for c in animation["channels"] if names[c["target"]["node"]] in keep]

    return change


class AsBlender(readback.Gltf):
    """A glTF file whose clips leave what they do not key where the clip before has put it."""

    before = None

    def clip(self, number):
        own = list(super().clip(number))
        keyed = {(node, path) for node, path, *_ in own}
        if self.before is not None:
            for node, path, times, values, way in super().clip(self.before):
                if (node, path) not in keyed:
                    own.append((node, path, times[:1], values[len(values) // 2 :][:1], way))
        return own


@pytest.fixture
def hero(tmp_path):
    """A character whose clips key only what they move: one its legs, one its hands."""
    body = sy.bundled("humanoid")
    path = tmp_path / "hero.glb"
    sy.save_motion(clip_of(body, "grab", HANDS, seed=1), path)
    rewrite(path, without("grab", HANDS))
    body = sy.load_skeleton(path)
    sy.save_motion(clip_of(body, "walk", ["left_upper_leg", "right_foot"], seed=2), path, into=path, force=True)
    rewrite(path, without("walk", ["left_upper_leg", "right_foot"]))
    rewrite(path, lambda content: [animation.pop("extras") for animation in content["animations"]])
    return path


def test_every_clip_shows_the_same_after_every_other_one(tmp_path, hero):
    body = sy.load_skeleton(hero)
    before = {one.name: one for one in load_motions(hero)}
    new = clip_of(body, "nod", ["head", "left_upper_arm"], seed=3, fps=30.0)
    sy.save_motion(new, tmp_path / "new.glb", verify=True)
    file = AsBlender(tmp_path / "new.glb")
    names = [animation["name"] for animation in file.json["animations"]]
    assert sorted(names) == ["grab", "nod", "walk"]
    rows = [file.names.index(name) for name in body.joint_names]
    for number, name in enumerate(names):
        own = ({"nod": new} | before)[name].positions()
        for other in (None, *range(len(names))):
            file.before = other
            seen = file.places(number)[0][:, rows]
            np.testing.assert_allclose(seen, own, atol=1e-5, err_msg=f"{name} after {other}")


def test_a_new_clip_keys_all_joints_and_stands_first(tmp_path, hero):
    body = sy.load_skeleton(hero)
    for path, into in (("new.glb", None), ("into.glb", hero)):
        motion = clip_of(sy.bundled("humanoid") if into is None else body, "nod", ["head"])
        sy.save_motion(motion, tmp_path / path, into=into)
        content, _ = content_of(tmp_path / path)
        first = content["animations"][0]
        assert first["name"] == "nod"
        names = [node.get("name") for node in content["nodes"]]
        keyed = {(names[c["target"]["node"]], c["target"]["path"]) for c in first["channels"]}
        joints = motion.skeleton.joint_names
        assert {(name, what) for name in joints for what in ("rotation", "translation")} <= keyed


def test_the_clip_that_was_written_last_is_the_one_that_is_read(tmp_path, hero):
    body, path = sy.load_skeleton(hero), tmp_path / "out.glb"
    for name in ("one", "two", "three"):
        sy.save_motion(clip_of(body, name, ["head"], seed=len(name)), path, into=hero, force=True, verify=True)
        assert sy.load_motion(path).name == name
        hero = path.rename(tmp_path / f"{name}.glb")
    names = [animation["name"] for animation in content_of(hero)[0]["animations"]]
    assert names[:3] == ["three", "two", "one"]
    rewrite(hero, lambda content: content["animations"].reverse())  # in whatever order another program puts them
    assert sy.load_motion(hero).name == "three"


def test_clips_of_version_0_1_stand_last(tmp_path, hero):
    """They have marks without numbers: the last one was written last, and a new clip comes after them."""

    def old(content):
        for animation in content["animations"]:
            animation["extras"] = {"generator": "Synovia"}

    rewrite(hero, old)
    last = content_of(hero)[0]["animations"][-1]["name"]
    assert sy.load_motion(hero).name == last
    motion = clip_of(sy.load_skeleton(hero), "nod", ["head"])
    sy.save_motion(motion, tmp_path / "out.glb", into=hero, verify=True)
    assert sy.load_motion(tmp_path / "out.glb").name == "nod"


def test_clips_of_other_joints_keep_their_channels(tmp_path, hero):
    """A clip gets keys at rest for what others move; it moves as before, and for as long as before."""
    before, _ = content_of(hero)
    lengths = {one.name: (len(one), one.fps) for one in load_motions(hero)}
    motion = clip_of(sy.load_skeleton(hero), "nod", ["head"], frames=9)
    sy.save_motion(motion, tmp_path / "out.glb", into=hero)
    after, _ = content_of(tmp_path / "out.glb")
    assert after["nodes"] == before["nodes"]
    for one, other in zip(before["animations"], after["animations"][1:], strict=True):
        assert other["channels"][: len(one["channels"])] == one["channels"]
        assert other["samplers"][: len(one["samplers"])] == one["samplers"]
    assert {one.name: (len(one), one.fps) for one in load_motions(tmp_path / "out.glb")[1:]} == lengths


def test_verify_sees_what_another_clip_leaves_and_which_clip_opens(tmp_path, hero):
    body, path = sy.load_skeleton(hero), tmp_path / "out.glb"
    motion = clip_of(body, "nod", ["head"])
    sy.save_motion(motion, path, into=hero)
    assert sy.formats.verify_file(motion, path).holds
    rewrite(path, without("nod", ["head"]))
    check = sy.formats.verify_file(motion, path)
    assert not check.holds
    assert "Clip 'nod' has no keys of" in check.report()
    sy.save_motion(motion, path, into=hero, force=True)
    rewrite(path, lambda content: content["animations"].reverse())
    assert "Programs that play the first clip of a file play" in sy.formats.verify_file(motion, path).report()


# --- VRM animations ---------------------------------------------------------------------------------------------------


TALL = 0.9  # height of the hips of a character, metres


def played(path, size):
    """Where a player puts the hips and the feet of a character ``size`` times as large, and heights in the T-pose."""
    file = readback.Gltf(path)
    bones = file.json["extensions"]["VRMC_vrm_animation"]["humanoid"]["humanBones"]
    number = {bone: entry["node"] for bone, entry in bones.items()}
    rest, clip = file.places()[0][0], file.places(0)[0]
    hips = number["hips"]
    place = clip[:, hips] * (size * TALL / rest[hips, 1])
    feet = [number[name] for name in ("leftFoot", "rightFoot")]
    return place, place[:, None] + size * (clip[:, feet] - clip[:, [hips]]), rest[hips, 1], rest[feet, 1]


def standing(shift, *, free=True):
    """A person whose rest pose is somewhere else, and a clip in which it stands on the floor of its own world."""
    body = sy.bundled("humanoid")
    joints = list(body.joints)
    rest = joints[0].rest.copy()
    rest[1, 3] += shift
    joints[0] = replace(joints[0], rest=rest)
    motion = clip_of(body, "stand", ["left_upper_arm", "chest", "right_foot"])
    q = np.array(motion.q)
    if free:
        q[:, 1] -= shift  # where the body stood before
    return sy.Motion(body.with_joints(joints), q, 30.0, name="stand")


@pytest.mark.parametrize("height", [0.0, -1.0, 0.4, 30.0])
def test_players_put_bodies_on_the_floor_wherever_they_rest(tmp_path, height):
    own, motion = standing(0.0), standing(height)
    np.testing.assert_allclose(motion.positions(), own.positions(), atol=1e-9)
    sy.save_motion(own, tmp_path / "own.vrma", verify=True)
    sy.save_motion(motion, tmp_path / "a.vrma", verify=True)
    reference, rests, wanted, _ = played(tmp_path / "own.vrma", 0.7)
    hips, feet, tall, soles = played(tmp_path / "a.vrma", 0.7)
    assert tall == pytest.approx(wanted, rel=0.03)  # the sole below the lowest joint follows from the clip alone
    assert (np.abs(soles) < 0.15 * tall).all()
    np.testing.assert_allclose(hips, reference, atol=0.03)
    np.testing.assert_allclose(feet, rests, atol=0.03)


def test_a_clip_below_the_floor_is_lifted_onto_it(tmp_path):
    """Hips that stay at the origin, as in clips of rotations alone."""
    body = sy.bundled("humanoid")
    motion = standing(-body.rest_pose().position("hips")[1], free=False)
    with pytest.warns(UserWarning, match=r"below the floor of the file, y = 0: it was lifted by 0\.\d+ m"):
        sy.save_motion(motion, tmp_path / "a.vrma", verify=True)
    hips, feet, *_ = played(tmp_path / "a.vrma", 0.7)
    assert (np.abs(feet[..., 1]) < 0.15).all()
    assert (hips[:, 1] > 0.5).all()


def test_verify_sees_the_height_that_players_divide_by(tmp_path):
    motion = standing(0.0)
    path = tmp_path / "a.vrma"
    sy.save_motion(motion, path)
    assert sy.formats.verify_file(motion, path).holds

    def lower(content):
        content["nodes"][0]["translation"][1] *= 0.5

    rewrite(path, lower)
    assert "players divide heights by it" in sy.formats.verify_file(motion, path).report()
