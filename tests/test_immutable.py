"""A skeleton does not change: no attribute can be set, and no array that it leads to can be written."""

import copy
import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synovia as sy

URDF = """<robot name="gripper">
  <link name="base"/> <link name="left"><inertial><mass value="2"/><origin xyz="0 0 0.1"/></inertial></link>
  <link name="right"/>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="left"/><origin xyz="0 0.1 0.3"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" velocity="1" effort="1"/></joint>
  <joint name="follows" type="prismatic"><parent link="base"/><child link="right"/><origin xyz="0 -0.1 0.3"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper="0.04" velocity="1" effort="1"/><mimic joint="slide"/></joint>
</robot>"""
MJCF = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/><geom size="0.1"/>
  <body name="arm" pos="0.2 0 0"><joint name="shoulder" type="ball"/><geom size="0.1"/>
    <site name="tool" pos="0.3 0 0" euler="0 30 0"/></body></body></worldbody></mujoco>"""
BVH = """HIERARCHY
ROOT hips { OFFSET 0 0 0 CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT spine { OFFSET 0 1 0 CHANNELS 3 Zrotation Xrotation Yrotation End Site { OFFSET 0 1 0 } } }
MOTION
Frames: 1
Frame Time: 0.1
0 0 0 0 0 0 0 0 0
"""


def _loaded(form: str, folder: Path) -> sy.Skeleton:
    """A skeleton read from a file of a format that is written here."""
    path = folder / f"model.{form}"
    match form:
        case "urdf":
            path.write_text(URDF)
        case "xml":
            pytest.importorskip("mujoco")
            path.write_text(MJCF)
        case "bvh":
            path.write_text(BVH)
        case "toml":
            sy.formats.write_skeleton(sy.bundled("quadruped"), path)
        case "glb":
            path.write_bytes(_source("humanoid").with_suffix(".glb").read_bytes())
        case _:
            body = sy.bundled("humanoid")
            sy.save_motion(sy.Motion(body, [body.random_pose(1).q], 10.0), path)
    found = sy.load_skeleton(path)
    assert found.source == path
    return found


def _source(name: str) -> Path:
    source = sy.bundled(name).source
    assert source is not None
    return source


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What a thing leads to, by name: attributes, elements, and what a function was given."""
    if isinstance(thing, np.ndarray):
        yield ".base", thing.base
    elif isinstance(thing, partial):
        yield from ((f".args[{i}]", one) for i, one in enumerate(thing.args))
    elif isinstance(thing, Mapping):
        yield from ((f"[{key!r}]", value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((f"[{i}]", one) for i, one in enumerate(thing))
    if type(thing).__module__.startswith("synovia"):
        slots = [slot for cls in type(thing).__mro__ for slot in getattr(cls, "__slots__", ())]
        yield from ((f".{slot}", getattr(thing, slot)) for slot in slots if hasattr(thing, slot))
        yield from ((f".{name}", value) for name, value in getattr(thing, "__dict__", {}).items())


def _arrays(start: sy.Skeleton) -> dict[str, np.ndarray]:
    """Every array that a skeleton leads to, once its cached values are there, by the way to it."""
    for name, value in vars(sy.Skeleton).items():
        if isinstance(value, cached_property):
            getattr(start, name)
    start.locate(0)
    for name in (*start.site_names, *start.roles):
        start.locate(name)
    found: dict[str, np.ndarray] = {}
    seen: dict[int, Any] = {}
    todo: list[tuple[str, Any]] = [("skeleton", start)]
    while todo:
        way, thing = todo.pop()
        if id(thing) in seen or thing is None:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, np.ndarray):
            found[way] = thing
        todo += [(way + name, part) for name, part in _parts(thing)]
    return found


def _check_that_nothing_can_be_written(skeleton: sy.Skeleton) -> None:
    found = _arrays(skeleton)
    seen = {id(one) for one in found.values()}
    tables = [getattr(skeleton.tables, each.name) for each in fields(skeleton.tables)]
    assert seen >= {id(one) for one in (*tables, *skeleton.limits, skeleton.rest_q, skeleton.lengths)}
    assert seen >= {id(joint.rest) for joint in skeleton.joints}
    assert not {way: one for way, one in found.items() if one.flags.writeable}


CHAIN = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
BUNDLED = ("arm7", "humanoid", "humanoid_hands", "quadruped")
FORMATS = ("urdf", "xml", "glb", "bvh", "toml", "npz")


@pytest.mark.parametrize("name", BUNDLED)
def test_no_array_of_a_bundled_model_can_be_written(name: str) -> None:
    _check_that_nothing_can_be_written(sy.bundled(name))


@pytest.mark.parametrize("form", FORMATS)
def test_no_array_of_a_skeleton_from_a_file_can_be_written(form: str, tmp_path: Path) -> None:
    _check_that_nothing_can_be_written(_loaded(form, tmp_path))


def test_a_walk_sees_an_array_that_can_be_written() -> None:
    skeleton = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    vars(skeleton)["rest_q"] = skeleton.rest_q.copy()
    assert [way for way, one in _arrays(skeleton).items() if one.flags.writeable] == ["skeleton.rest_q"]


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.with_root("xy"),
        lambda body: body.with_root("free"),
        lambda body: body.with_limits({0: None}),
        lambda body: body.with_roles({}),
        lambda body: body.with_joints(body.joints),
        copy.copy,
        copy.deepcopy,
        lambda body: pickle.loads(pickle.dumps(body)),
    ],
    ids=["axes", "free root", "limits", "roles", "joints", "copy", "deep copy", "pickle"],
)
@pytest.mark.parametrize("name", ["arm7", "quadruped"])
def test_no_array_of_a_changed_or_copied_skeleton_can_be_written(name: str, change: Any) -> None:
    before = sy.bundled(name)
    after = change(before)
    _check_that_nothing_can_be_written(after)
    _check_that_nothing_can_be_written(before)
    assert after.source == before.source
    if after.nq == before.nq:
        q = before.random_pose(3).q
        np.testing.assert_array_equal(sy.Pose(after, q).positions, sy.Pose(before, q).positions)


@pytest.mark.parametrize("name", [*vars(CHAIN), *vars(sy.Skeleton), "color"])
def test_no_attribute_of_a_skeleton_can_be_set_or_deleted(name: str) -> None:
    before = dict(vars(CHAIN))
    with pytest.raises(AttributeError, match=rf"skeletons are immutable; with_joints, .*\(tried '{name}'\)"):
        setattr(CHAIN, name, None)
    with pytest.raises(AttributeError, match="skeletons are immutable"):
        delattr(CHAIN, name)
    assert vars(CHAIN) == before


def test_no_attribute_of_what_a_skeleton_consists_of_can_be_set(tmp_path: Path) -> None:
    gripper = _loaded("urdf", tmp_path)
    kinds = [gripper.tables]
    for joint in (*gripper.joints, *sy.bundled("humanoid").joints):
        kinds += [part for part in (joint, joint.limit, joint.mimic, *joint.sites) if part is not None]
    assert {sy.Joint, sy.Interval, sy.SwingTwist, sy.Mimic} <= {type(one) for one in kinds}
    for one in kinds:
        assert is_dataclass(one)
        for each in fields(one):
            with pytest.raises(AttributeError, match=each.name):
                setattr(one, each.name, None)
    with pytest.raises(TypeError):
        gripper.role_rows["hips"] = 0  # type: ignore[index]


def test_arrays_that_were_given_stay_writable_and_change_nothing() -> None:
    rest, axis, com = np.eye(4), np.array([0.0, 0.0, 1.0]), np.zeros(3)
    skeleton = sy.Skeleton([sy.Joint("a", kind=sy.Kind.HINGE, rest=rest, axis=axis, com=com, mass=1.0)])
    rest[:3, 3], axis[:], com[:] = 5.0, (1.0, 0.0, 0.0), 3.0
    assert skeleton.rest_pose().position("a").tolist() == [0.0, 0.0, 0.0]
    assert skeleton.joint("a").axis.tolist() == [0.0, 0.0, 1.0]
    assert skeleton.joint("a").com.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.slow
def test_a_skeleton_goes_to_another_process_and_back() -> None:
    arm = sy.bundled("arm7")
    _arrays(arm)  # with all cached values
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        back = pool.submit(sy.Skeleton.with_root, arm, "x").result(timeout=300)
    assert back.joint_names == arm.with_root("x").joint_names
    _check_that_nothing_can_be_written(back)
