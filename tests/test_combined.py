"""Several bodies as one skeleton: places, units, axes, loops and couplings; poses that are split again; clearance."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanisms
import synovia as sy
from trees import random_frame, random_tree

ARM = sy.bundled("arm7")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1.0, 0.01]), st.sampled_from(["y", "z", "-x"]))
def test_frames_are_those_of_the_bodies_at_their_places(seed, unit, up):
    rng = np.random.default_rng(seed)
    first = sy.Skeleton(random_tree(rng, 5, limits=True).joints, meters_per_unit=1.0, up="z")
    second = sy.Skeleton(random_tree(rng, 6, free=True, limits=True).joints, meters_per_unit=unit, up=up)
    place = random_frame(rng)
    bodies = {"a": first, "b": second}
    cell = sy.combine(bodies, at={"b": place})
    pose = cell.random_pose(int(rng.integers(1000)))
    parts = sy.skeletons.separate(pose, bodies)
    upright = np.eye(4)
    upright[:3, :3] = sy.Rotation.align_vectors([[0, 0, 1]], [axis(up)])[0].as_matrix()  # a quarter turn
    for name, body in bodies.items():
        base, factor = (np.eye(4), 1.0) if name == "a" else (place @ upright, unit)
        for joint in body.joint_names:
            expected = parts[name].transform(joint)
            expected[:3, 3] *= factor
            assert np.allclose(pose.transform(f"{name}/{joint}"), base @ expected, atol=1e-9)
    again = np.concatenate([parts[name].q for name in bodies])
    slides = [cell.q_slice(f"b/{joint.name}").start for joint in second.joints if joint.kind is sy.Kind.SLIDE]
    slides += [*range(first.nq, first.nq + 3)]  # the free root
    again[slides] *= unit
    assert np.allclose(again, pose.q, atol=1e-12)


def axis(name):
    """Return an axis as a vector."""
    return np.eye(3)["xyz".index(name[-1])] * (-1.0 if name[0] == "-" else 1.0)


def test_a_body_stands_on_another_one():
    plate = sy.Joint("plate", sites=(sy.skeletons.Site("mount", random_frame(np.random.default_rng(2))),))
    cart = sy.Skeleton([plate], name="cart", up="z", meters_per_unit=1.0).with_root("x,y,yaw")
    cell = sy.combine({"arm": ARM, "cart": cart}, on={"arm": "site:cart/mount"}, at={"arm": (0, 0, 0.1)})
    assert cell.joint_names[0] == "cart/root_x"  # what carries another body comes first
    pose = cell.random_pose(5)
    parts = sy.skeletons.separate(pose, {"arm": ARM, "cart": cart})
    lifted = np.eye(4)
    lifted[2, 3] = 0.1
    expected = parts["cart"].transform("mount") @ lifted @ parts["arm"].transform("tool")
    assert np.allclose(pose.transform("arm/tool"), expected, atol=1e-12)


@pytest.mark.parametrize("make", [mechanisms.four_bar, mechanisms.slider_crank, mechanisms.delta_robot])
@pytest.mark.parametrize("carried", [False, True])
def test_loops_close_at_another_place_and_in_another_unit(make, carried):
    body = make().with_unit("mm")
    ground = sy.Skeleton([sy.Joint("base"), sy.Joint("turn", "base", sy.Kind.HINGE, axis=(1, 0, 0))]).with_unit("m")
    place = random_frame(np.random.default_rng(1))
    cell = sy.combine({"g": ground, "m": body}, at={"m": place}, on={"m": "g/turn"} if carried else None)
    pose = cell.random_pose(3)
    part = sy.skeletons.separate(pose, {"m": body})["m"]
    assert np.allclose(sy.close_loops(body, part.q).q, part.q, atol=1e-6)
    base = pose.transform("g/turn") @ place if carried else place
    for joint in body.joint_names:
        expected = part.transform(joint)
        expected[:3, 3] *= 0.001
        assert np.allclose(pose.transform(f"m/{joint}"), base @ expected, atol=1e-9)


def test_couplings_and_mimic_joints_keep_their_meaning_in_another_unit():
    slide = {"kind": sy.Kind.SLIDE, "axis": (1, 0, 0), "limit": sy.Interval(0.0, 30.0)}
    turn = {"kind": sy.Kind.HINGE, "axis": (0, 0, 1), "limit": sy.Interval(-1.0, 1.0)}
    joints = [
        sy.Joint("a", **slide),
        sy.Joint("b", "a", **turn),
        sy.Joint("c", "b", kind=sy.Kind.SLIDE, axis=(0, 1, 0), mimic=sy.Mimic("b", 20.0, 5.0)),
        sy.Joint("d", "c", kind=sy.Kind.HINGE, axis=(0, 1, 0), mimic=sy.Mimic("a", 0.02, 0.1)),
    ]
    tie = sy.Coupling({"a": (1.0, 0.03), "b": (-8.0, 2.0)}, 6.0)
    body = sy.Skeleton(joints, loops=[tie], meters_per_unit=0.001)
    cell = sy.combine({"m": sy.Skeleton([sy.Joint("o")], meters_per_unit=1.0), "g": body})
    for seed in range(20):
        pose = cell.random_pose(seed)
        part = sy.skeletons.separate(pose, {"g": body})["g"]
        a, b, c, d = part.q
        assert a + 0.03 * a**2 - 8 * b + 2 * b**2 == pytest.approx(6.0, abs=1e-5)
        assert (c, d) == (pytest.approx(20 * b + 5), pytest.approx(0.02 * a + 0.1))
        assert pose["g/a"] == pytest.approx(a / 1000)


def test_motions_are_split_and_saved_skeletons_read_back(tmp_path):
    bodies = {"left": ARM, "right": ARM}
    cell = sy.combine(bodies, at={"left": (0, 1, 0)}, name="cell")
    assert (cell.name, cell.up, cell.meters_per_unit) == ("cell", "z", 1.0)
    motion = sy.Motion(cell, np.linspace(cell.random_pose(1).q, cell.random_pose(2).q, 5), fps=30)
    parts = sy.skeletons.separate(motion, bodies)
    assert np.array_equal(np.concatenate([part.q for part in parts.values()], axis=1), motion.q)
    assert parts["left"].skeleton is ARM
    sy.formats.write_skeleton(cell, tmp_path / "cell.toml")
    again = sy.load_skeleton(tmp_path / "cell.toml")
    assert again.joint_names == cell.joint_names
    assert np.allclose(again.random_pose(4).positions, cell.random_pose(4).positions, atol=1e-9)
    assert pickle.loads(pickle.dumps(cell)).joint_names == cell.joint_names
    nested = sy.combine({"cell": cell, "person": sy.bundled("humanoid")}, at={"person": (2, 0, 0)})
    assert "cell/left/tool" in nested.joint_names
    assert nested.rest_pose().position("person/head")[2] > 1.0  # upright, although it has y up


def test_pairs_of_two_bodies_count_even_if_they_touch_at_rest():
    cell = sy.combine({"left": ARM, "right": ARM}, at={"right": (0.05, 0, 0)})
    found = sy.shapes.self_pairs(cell)
    own = sy.shapes.self_pairs(ARM)
    assert found.pairs
    across = [pair for pair in found.pairs if {name.partition("/")[0] for name in pair} == {"left", "right"}]
    assert len(found.pairs) - len(across) == 2 * len(own.pairs)
    left_out = {why for pair, why in found.left_out.items() if pair[0].split("/")[0] != pair[1].split("/")[0]}
    assert left_out <= {"no joint between them", "touch nearly always"}


def test_two_arms_over_a_table_reach_apart_from_each_other():
    coal = pytest.importorskip("coal")
    cell = sy.combine({"left": ARM, "right": ARM}, at={"left": (0, 0.35, 0), "right": (0, -0.35, 0)})
    table = sy.World({"table": sy.Box(center=(0.5, 0, -0.05), size=(1.2, 2, 0.1))})
    goals = [sy.PositionGoal("left/tool"), sy.PositionGoal("right/tool"), sy.ClearanceGoal(0.02, world=table)]
    ik = sy.IK(cell, goals)
    rng = np.random.default_rng(0)
    places = rng.uniform((0.2, -0.4, 0.1), (0.8, 0.4, 0.7), (60, 2, 3))
    found = ik.solve_many({"left/tool": places[:, 0], "right/tool": places[:, 1]})
    assert found.reached.any()
    pairs = [
        (a, b)
        for a, b in itertools.product(cell.shapes, repeat=2)
        if a.startswith("left/") and b.startswith("right/") and {a, b} != {"left/base", "right/base"}
    ]
    shapes = {name: [(coal_shape(coal, each), each) for each in solids] for name, solids in cell.shapes.items()}
    for k in np.flatnonzero(found.reached):
        pose = found[int(k)].pose
        for a, b in pairs:
            for (first, at_a), (second, at_b) in itertools.product(shapes[a], shapes[b]):
                gap = distance(coal, first, pose.transform(a), at_a, second, pose.transform(b), at_b)
                assert gap > 0.02 - 1e-4, (a, b, gap)


def coal_shape(coal, solid):
    """Return a capsule as coal has it."""
    assert isinstance(solid, sy.Capsule)
    a, b = np.array(solid.a), np.array(solid.b)
    return coal.Capsule(solid.radius, float(np.linalg.norm(b - a)))


def distance(coal, first, frame_a, at_a, second, frame_b, at_b):
    """Return the distance of two capsules by coal."""
    places = []
    for frame, solid in ((frame_a, at_a), (frame_b, at_b)):
        a, b = np.array(solid.a), np.array(solid.b)
        turn = sy.Rotation.align_vectors([b - a], [[0, 0, 1]])[0].as_matrix() if np.any(a != b) else np.eye(3)
        places.append(coal.Transform3s(frame[:3, :3] @ turn, frame[:3, :3] @ ((a + b) / 2) + frame[:3, 3]))
    return coal.distance(first, places[0], second, places[1], coal.DistanceRequest(), coal.DistanceResult())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "skeletons by name"),
        (([ARM],), "skeletons by name"),
        (({"a/b": ARM},), "without '/' and ':'"),
        (({"a": 3},), "body 'a'"),
        (({"a": ARM}, {"b": (0, 0, 0)}), "no body named 'b'"),
        (({"a": ARM}, {"a": (0, 0)}), r"at\['a'\]"),
        (({"a": ARM}, None, {"a": "tool"}), "'cart/plate'"),
        (({"a": ARM}, None, {"a": "b/tool"}), "no body named 'b'"),
        (({"a": ARM, "b": ARM}, None, {"a": "b/too"}), "too"),
        (({"a": ARM, "b": ARM}, None, {"a": "b/tool", "b": "a/tool"}), "cycle"),
        (({"a": ARM}, None, {"a": "a/tool"}), "cycle"),
    ],
)
def test_bad_input_is_named(arguments, message):
    bodies, at, on = (*arguments, None, None)[:3]
    with pytest.raises(sy.SynoviaError, match=message):
        sy.combine(bodies, at=at, on=on)


def test_only_combined_skeletons_are_split():
    with pytest.raises(sy.InputError, match="body 'left'"):
        sy.skeletons.separate(ARM.rest_pose(), {"left": ARM})
    with pytest.raises(sy.InputError, match="a Pose or a Motion"):
        sy.skeletons.separate(ARM, {"left": ARM})


@pytest.mark.parametrize("order", [("arm", "person"), ("person", "arm")])
def test_a_body_stands_up_although_its_file_names_no_axis(order):
    """The rest pose of a BVH stands along y; the arm has z up."""
    person = sy.bundled("humanoid")
    bodies = {"arm": sy.bundled("arm7"), "person": sy.Skeleton(person.joints, name="person")}
    cell = sy.combine({name: bodies[name] for name in order})
    places = cell.rest_pose()
    assert cell.up == "z"
    assert (places.position("person/head") - places.position("person/hips"))[2] > 0.4
    assert not [note for note in cell.notes if "axis" in note]


def test_units_and_axes_that_are_assumed_are_named():
    plain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    notes = " ".join(sy.combine({"arm": ARM, "plain": plain}).notes)
    assert "plain: Its length unit is unknown, and assumed to be 1 m" in notes
    assert "plain: Its axis that points up is unknown, and assumed to be z" in notes
    assert not sy.combine({"arm": ARM, "other": ARM}).notes
