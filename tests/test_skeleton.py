"""Skeletons: order, names, couplings, limits at rest, samples, copies."""

import copy
import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synovia.errors import InputError, UnknownNameError
from synovia.model import MAX_JOINTS, Joint, Kind, Mimic, Pose, Skeleton
from synovia.model.limits import Interval, SwingTwist

Z = np.array([0.0, 0.0, 1.0])


def hinge(name, parent=None, low=None, high=None, **more):
    limit = None if low is None else Interval(low, high)
    return Joint(name, parent, Kind.HINGE, axis=Z, limit=limit, **more)


def body(rng):
    """A small tree with every kind of joint, at random rests."""
    rests = []
    for _ in range(8):
        rest = np.eye(4)
        rest[:3, :3] = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
        rest[:3, 3] = rng.normal(size=3)
        rests.append(rest)
    ball = SwingTwist(x=(0.4, 0.8), y=(0.3, 1.0), twist=(0.2, 0.5), frame=np.eye(3))
    return [
        Joint("root", None, Kind.FREE, rests[0]),
        Joint("hip", "root", Kind.BALL, rests[1], limit=ball, role="left_upper_leg"),
        hinge("knee", "hip", 0.3, 2.0, rest=rests[2]),
        hinge("ankle", "knee", -0.4, 0.4, rest=rests[3], mimic=Mimic("knee", -0.5, 0.1)),
        Joint("slide", "root", Kind.SLIDE, rests[4], Z, Interval(-2.0, -1.0)),
        Joint("lid", "slide", Kind.FIXED, rests[5]),
        hinge("wheel", "root", rest=rests[6]),
        Joint("eye", "lid", Kind.BALL, rests[7]),
    ]


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_list_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    joints = body(rng)
    a, b = Skeleton(joints), Skeleton([joints[i] for i in rng.permutation(len(joints))])
    pose = a.random_pose(seed)
    q = np.empty(b.nq)
    for name in a.joint_names:
        q[b.q_slice(name)] = np.atleast_1d(pose[name])
    other = Pose(b, q)
    for name in a.joint_names:
        np.testing.assert_allclose(other.transform(name), pose.transform(name), atol=1e-13)
        assert b.parents[b.index(name)] < b.index(name)


def test_a_good_order_is_kept():
    joints = body(np.random.default_rng(0))
    assert Skeleton(joints).joint_names == tuple(joint.name for joint in joints)


def test_parents_by_index_stay_right_when_the_list_is_reordered():
    a = Skeleton([hinge("c", 2), hinge("a"), hinge("b", 1)])
    assert a.joint_names == ("a", "b", "c")
    again = Skeleton(a.joints)
    assert (again.joint_names, again.parents) == (a.joint_names, a.parents)


@pytest.mark.parametrize(
    ("joints", "match"),
    [
        ([], "at least one joint"),
        ([hinge("a", "b")], "parent 'b' of joint 'a' does not exist"),
        ([hinge("a", 3)], "parent 3 of joint 'a' does not exist"),
        ([hinge("a", -1)], "parent -1 of joint 'a' does not exist"),
        ([hinge("a"), hinge("b", 0.5)], "parent 0.5 of joint 'b' does not exist"),
        ([hinge("a"), hinge("b", [0])], "of joint 'b' does not exist"),
        ([hinge("a"), "b"], r"joints\[1\]: expected a Joint, got str"),
        ([hinge("a", "a")], "'a' is its own ancestor"),
        ([hinge("c", "a"), hinge("a", "b"), hinge("b", "a")], "'[ab]' is its own ancestor"),
        ([hinge("a"), hinge("a"), hinge("b", "a")], "parent 'a' of joint 'b' is ambiguous"),
        ([hinge("a", mimic=Mimic("a"))], "'a' follows itself"),
        ([hinge("a", mimic=Mimic("b")), hinge("b", mimic=Mimic("a"))], "follows itself"),
        ([hinge("a"), Joint("b", "a"), hinge("c", "b", mimic=Mimic("b"))], "follows 'b', a FIXED joint"),
        ([hinge("a", None, 0, 1), hinge("b", "a", 2, 3, mimic=Mimic("a", binds=True))], "limits that overlap"),
        ([hinge("a"), hinge("b", "a", 2, 3, mimic=Mimic("a", 0.0, 1.0, binds=True))], "value of joint 'b'"),
    ],
)
def test_trees_that_cannot_be_are_refused(joints, match):
    with pytest.raises(InputError, match=match):
        Skeleton(joints)


def test_an_unknown_leader_is_an_unknown_name():
    with pytest.raises(UnknownNameError, match="no joint named 'bb'"):
        Skeleton([hinge("a"), hinge("b", "a", mimic=Mimic("bb"))])


def test_a_joint_has_a_name_in_letters():
    with pytest.raises(InputError, match="joint 5: name: expected text, got 5"):
        Joint(5)


@pytest.mark.parametrize("axis", ["w", "", "Y", "+y", 1])
def test_axes_of_a_skeleton_have_known_names(axis):
    for name in ("up", "forward"):
        with pytest.raises(InputError, match=f"skeleton: {name}: expected one of x, y, z, -x, -y, -z"):
            Skeleton([hinge("a")], **{name: axis})


@pytest.mark.parametrize("unit", [0.0, -1.0, np.nan, np.inf, "cm"])
def test_units_are_positive(unit):
    with pytest.raises(InputError, match="meters_per_unit"):
        Skeleton([hinge("a")], meters_per_unit=unit)


def test_too_many_joints():
    with pytest.raises(InputError, match="number of joints"):
        Skeleton([Joint("a")] * (MAX_JOINTS + 1))


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"kind": Kind.HINGE}, "axis: expected a vector"),
        ({"kind": Kind.HINGE, "axis": (0, np.nan, 0)}, "axis"),
        (
            {"kind": Kind.HINGE, "axis": Z, "limit": SwingTwist(x=(1, 1), y=(1, 1))},
            "limit of a HINGE joint",
        ),
        ({"kind": Kind.BALL, "limit": Interval()}, "expected SwingTwist"),
        ({"limit": Interval()}, "expected none"),
        ({"kind": Kind.BALL, "mimic": Mimic("b")}, "mimic: expected"),
        ({"rest": 2 * np.eye(4)}, "rest transform"),
        ({"com": (1, 2)}, "centre of mass"),
        ({"mass": -1.0}, "mass"),
        ({"mass": "heavy"}, "mass"),
        ({"velocity": "fast"}, "velocity"),
        ({"kind": Kind.HINGE, "axis": Z, "preferred": [0.1]}, "preferred"),
        ({"kind": 1, "axis": Z}, "kind: expected a Kind"),
        ({"kind": "hinge", "axis": Z}, "kind: expected a Kind"),
        ({"kind": Kind.HINGE, "axis": Z, "mimic": "knee"}, "mimic: expected a Mimic"),
        ({"kind": Kind.HINGE, "axis": Z, "mimic": Mimic("b", "x")}, "coupling"),
        ({"stiffness": np.inf}, "stiffness"),
        ({"kind": Kind.HINGE, "axis": Z, "mimic": Mimic("b", np.nan)}, "coupling"),
    ],
)
def test_joints_that_cannot_be_are_refused_by_name(bad, match):
    with pytest.raises(InputError, match="'elbow'") as caught:
        Joint("elbow", **bad)
    assert match in str(caught.value)


def test_names_bodies_roles_and_rows_address_a_joint():
    s = Skeleton(
        [
            hinge("j1", body="arm"),
            hinge("j2", 0, body="arm"),
            hinge("hand", 1, body="hand_link", role="hand"),
            hinge("x", 2, role="left_foot"),
        ]
    )
    assert s.index("arm") == 1  # the last joint of a body
    assert s.index("hand") == s.index("hand_link") == s.index(2) == s.index(np.int32(2)) == 2
    assert s.index("left_foot") == 3
    assert dict(s.roles) == {"hand": "hand", "left_foot": "x"}
    assert s.path("hand") == "j1/j2/hand"
    assert s.joint("arm").name == "j2"
    assert s.tips == ("x",)
    for bad in (-1, 4, "HAND", None, True, [1], 1.0, ""):
        with pytest.raises(UnknownNameError):
            s.index(bad)
    with pytest.raises(UnknownNameError, match="Did you mean 'hand', 'hand_link'"):
        s.index("handl")


def test_an_ambiguous_name_lists_all_that_it_means():
    s = Skeleton([hinge("root"), hinge("a", 0), hinge("tip", 1), hinge("b", 0), hinge("tip", 3)], name="twins")
    with pytest.raises(UnknownNameError, match="twins") as caught:
        s.index("tip")
    assert "root/a/tip (joint 2)" in str(caught.value)
    assert "root/b/tip (joint 4)" in str(caught.value)
    assert s.index(4) == 4
    s = Skeleton([hinge("a", body="c"), hinge("b", 0, body="c2"), hinge("d", 1, body="c")])
    with pytest.raises(UnknownNameError, match=r"joint 0.*joint 2|joint 2.*joint 0"):
        s.index("c")
    s = Skeleton([hinge("a", role="hand"), hinge("b", 0, role="hand")])
    with pytest.raises(UnknownNameError, match="several"):
        s.index("hand")


def test_a_name_goes_before_a_role():
    s = Skeleton([hinge("a", role="b"), hinge("b", 0)])
    assert s.index("b") == 1


def test_couplings_of_couplings():
    s = Skeleton(
        [hinge("c", "b", mimic=Mimic("b", 2.0, 1.0)), hinge("a"), hinge("b", "a", mimic=Mimic("a", -3.0, 0.5))]
    )
    pose = s.rest_pose().with_values({"a": 0.2})
    assert pose["b"] == pytest.approx(-3 * 0.2 + 0.5)
    assert pose["c"] == pytest.approx(2 * (-3 * 0.2 + 0.5) + 1)


@given(st.integers(0, 2**32 - 1))
def test_limits_of_followers_bind_their_leader_only_where_they_are_asked_to(seed):
    rng = np.random.default_rng(seed)
    ratio, offset = float(rng.uniform(0.3, 3) * rng.choice((-1, 1))), float(rng.uniform(-1, 1))
    low = ratio * 0.5 + offset
    for binds in (False, True):
        mimic = Mimic("a", ratio, offset, binds)
        s = Skeleton([hinge("a", None, -2, 2), hinge("b", "a", low - 0.5, low + 0.5, mimic=mimic)])
        values = np.array([s.random_pose(k).q for k in range(40)])
        np.testing.assert_array_equal(values[:, 1], ratio * values[:, 0] + offset)
        least, most = s.value_range("a")
        assert (least, most) == (s.limits[0][0], s.limits[1][0])
        assert np.all((values[:, 0] >= least) & (values[:, 0] <= most))
        assert np.ptp(values[:, 0]) > 0.5 * (most - least)
        assert np.isinf([s.limits[0][1], s.limits[1][1]]).all()
        ends = sorted(ratio * end + offset for end in (least, most))
        assert s.value_range("b") == pytest.approx(ends)
        assert s.joint("b").limit == Interval(low - 0.5, low + 0.5)
        if binds:
            assert low - 0.5 - 1e-9 <= min(ends) <= max(ends) <= low + 0.5 + 1e-9
            assert low - 0.5 - 1e-9 <= s.rest_pose()["b"] <= low + 0.5 + 1e-9
        else:
            assert (least, most) == (-2, 2)


def test_only_the_follower_that_binds_narrows_a_chain_of_couplings():
    a = hinge("a", None, -2, 2)
    b, c = hinge("b", "a", 0, 1, mimic=Mimic("a")), hinge("c", "b", -1, 1, mimic=Mimic("b", 2.0, binds=True))
    s = Skeleton([a, b, c])
    assert s.value_range("a") == (-0.5, 0.5)
    assert s.value_range("b") == (-0.5, 0.5)
    assert s.value_range("c") == (-1.0, 1.0)
    with pytest.raises(InputError, match="has no single value"):
        Skeleton([Joint("eye", kind=Kind.BALL)]).value_range("eye")


def test_a_joints_own_name_wins_over_a_body_for_values_and_both_win_over_a_role():
    s = Skeleton([hinge("wrist", body="grip"), hinge("grip", "wrist", body="jaw"), hinge("c", "grip", role="jaw")])
    assert [s.value_index(name) for name in ("wrist", "grip", "jaw", "c")] == [0, 1, 1, 2]
    assert [s.index(name) for name in ("wrist", "jaw", "c")] == [0, 1, 2]


def test_notes_stay_with_copies_and_have_no_say():
    s = Skeleton([hinge("a"), hinge("b", "a")], notes=["The weld was not kept."])
    for again in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.with_root("free")):
        assert again.notes == ("The weld was not kept.",)
    assert Skeleton([hinge("a")]).notes == ()


def test_rest_is_brought_into_limits_that_exclude_it():
    s = Skeleton(body(np.random.default_rng(1)))
    pose = s.rest_pose()
    assert pose["knee"] == 0.3
    assert pose["slide"] == -1.0
    assert pose["ankle"] == pytest.approx(-0.05)
    np.testing.assert_allclose(pose["hip"], Rotation.from_rotvec([0, 0, 0.2]).as_quat(), atol=1e-12)
    np.testing.assert_array_equal(pose["eye"], [0, 0, 0, 1])
    np.testing.assert_array_equal(pose["root"], [0, 0, 0, 0, 0, 0, 1])


def test_random_poses_are_inside_and_repeatable():
    s = Skeleton(body(np.random.default_rng(2)))
    lower, upper = s.limits
    for seed in (0, 1, 2**32 - 1):
        pose = s.random_pose(seed)
        assert (pose.q >= lower - 1e-9).all()
        assert (pose.q <= upper + 1e-9).all()
        np.testing.assert_array_equal(pose["root"], s.rest_pose()["root"])
        np.testing.assert_array_equal(pose.q, s.random_pose(seed).q)
    assert not np.array_equal(s.random_pose(1).q, s.random_pose(2).q)
    np.testing.assert_array_equal(s.random_pose(np.int64(1)).q, s.random_pose(1).q)
    for bad in (-1, 2**32, 1.5, "1", None):
        with pytest.raises(InputError, match="seed"):
            s.random_pose(bad)


def test_limits_are_as_long_as_q():
    s = Skeleton(body(np.random.default_rng(2)))
    lower, upper = s.limits
    assert len(lower) == len(upper) == s.nq
    assert (lower[s.q_slice("knee")], upper[s.q_slice("knee")]) == (0.3, 2.0)
    assert np.isinf(lower[s.q_slice("hip")]).all()


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_skeletons_copy_and_pickle(copier):
    s = Skeleton(body(np.random.default_rng(3)), name="body", meters_per_unit=0.01, up="y")
    _ = s.roles, s.limits, s.children, s.rest_q, s.lengths, s.size
    again = copier(s)
    assert (again.name, again.meters_per_unit, again.up, again.joint_names) == ("body", 0.01, "y", s.joint_names)
    assert dict(again.roles) == dict(s.roles)
    np.testing.assert_array_equal(again.random_pose(5).frames, s.random_pose(5).frames)
    check_protected(again)
    pose = copier(s.random_pose(6))
    np.testing.assert_array_equal(pose.frames, s.random_pose(6).frames)
    assert not pose.q.flags.writeable
    assert not pose.frames.flags.writeable


def check_protected(s):
    arrays = [*s.limits, s.rest_q, s.lengths]
    for joint in s.joints:
        arrays += [joint.rest, joint.axis, joint.com]
    assert not any(array.flags.writeable for array in arrays)


def test_what_is_handed_out_is_read_only():
    check_protected(Skeleton(body(np.random.default_rng(4))))
    check_protected(Skeleton([Joint("a")]))
    rest = np.eye(4)
    joint = Joint("a", rest=rest)
    rest[0, 3] = 5.0
    assert joint.rest[0, 3] == 0.0


def test_chain():
    s = Skeleton.chain([(1, 0, 0), (1, 1, 0), (1, 3, 0)], names=["a", "b", "c"], meters_per_unit=0.01)
    np.testing.assert_allclose(s.rest_pose().positions, [(1, 0, 0), (1, 1, 0), (1, 3, 0)])
    np.testing.assert_allclose(s.lengths, [0, 1, 2])
    assert (s.size, s.nq, s.nv, s.tips) == (3.0, 8, 6, ("c",))
    for bad in ([(0, 0, 0)], [], [(0, 0)], "abc", [(0, 0, 0), (np.nan, 0, 0)]):
        with pytest.raises(InputError):
            Skeleton.chain(bad)
    with pytest.raises(InputError, match="names and limits"):
        Skeleton.chain([(0, 0, 0), (1, 0, 0)], names=["a"])


@pytest.mark.compiled
def test_long_chains_are_built_in_reasonable_time():
    begun = time.process_time()
    s = Skeleton.chain(np.outer(np.arange(3000.0), (0, 1, 0)))
    end = s.rest_pose().position("joint2999")
    assert time.process_time() - begun < 10.0
    np.testing.assert_allclose(end, (0, 2999, 0))
    with pytest.raises(UnknownNameError):
        s.index("joint30000")
    assert len(Skeleton(list(reversed([Joint(f"{i}", f"{i - 1}" if i else None) for i in range(3000)])))) == 3000


# --- Skeletons made from others -------------------------------------------------------------------------------------


def test_limits_can_be_replaced():
    s = Skeleton(body(np.random.default_rng(3)), name="b", up="y", notes=("a loop is open",))
    ball = SwingTwist(x=(0.1, 0.1), y=(0.2, 0.2), frame=np.eye(3))
    t = s.with_limits({"knee": (0.5, 1.0), "left_upper_leg": ball, "slide": None, "wheel": Interval(-1.0, 1.0)})
    assert (t.name, t.up, t.notes, t.joint_names) == (s.name, s.up, s.notes, s.joint_names)
    assert (t.joint("knee").limit, t.joint("hip").limit) == (Interval(0.5, 1.0), ball)
    assert t.joint("slide").limit is None
    assert t.value_range("knee") == (0.5, 1.0)
    assert t.joint("ankle").limit == s.joint("ankle").limit
    assert s.value_range("knee") == (0.3, 2.0)  # the other one is as it was


@pytest.mark.parametrize(
    ("limits", "match"),
    [
        ({"knee": (2.0, 1.0)}, "limits: expected lower <= upper"),
        ({"knee": SwingTwist(x=(1, 1), y=(1, 1))}, "limit of a HINGE joint"),
        ({"hip": (0.0, 1.0)}, "limit of a BALL joint"),
        ({"knee": 1.0}, "limit of joint 'knee'"),
        ({"knee": None, 2: None}, "each joint once"),
    ],
)
def test_limits_that_a_joint_cannot_have_are_refused(limits, match):
    with pytest.raises(InputError, match=match):
        Skeleton(body(np.random.default_rng(3))).with_limits(limits)


def test_limits_of_a_joint_that_is_not_there():
    with pytest.raises(UnknownNameError, match="no joint named 'kne'"):
        Skeleton([hinge("knee")]).with_limits({"kne": (0, 1)})


@pytest.mark.parametrize("root", ["free", "x,yaw", ("z", "roll", "x")])
def test_a_root_that_moves_leaves_the_rest_pose_where_it_was(root):
    _, hip, knee, ankle = body(np.random.default_rng(4))[:4]
    s = Skeleton([replace(hip, parent=None), knee, ankle])
    t = s.with_root(root)
    added = len(t) - len(s)
    assert added == (1 if root == "free" else len(root.split(",") if isinstance(root, str) else root))
    np.testing.assert_allclose(t.rest_pose().positions[added:], s.rest_pose().positions, atol=1e-14)
    assert t.with_root("free") is t if root == "free" else t.with_root("free") is not t


def test_a_free_root_can_be_fixed():
    s = Skeleton(body(np.random.default_rng(5)))
    t = s.with_root("fixed")
    assert (t.nq, t.joints[0].kind) == (s.nq - 7, Kind.FIXED)
    np.testing.assert_allclose(t.rest_pose().frames, s.rest_pose().frames, atol=1e-14)
    assert t.with_root("fixed") is t
    with pytest.raises(InputError, match="root: expected 'fixed'"):
        s.with_root("loose")


def test_a_pose_from_some_joints_by_name():
    s = Skeleton(body(np.random.default_rng(6)))
    pose = Pose(s, {"knee": 1.0, "wheel": -0.5})
    expected = s.rest_pose().with_values({"knee": 1.0, "wheel": -0.5})
    assert np.array_equal(pose.q, expected.q)
    assert (pose["knee"], pose["ankle"], pose["slide"]) == (1.0, pytest.approx(-0.4), -1.0)
    with pytest.raises(UnknownNameError, match="no joint named 'kneee'"):
        Pose(s, {"kneee": 1.0})


@pytest.mark.parametrize("root", ["free", "xy"])
def test_a_pose_of_a_skeleton_with_a_root_starts_a_solve_with_that_root(root):
    from synovia.facade import IK
    from synovia.goals import PositionGoal

    arm = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
    moving = arm.with_root(root)
    ik = IK(arm, PositionGoal("joint2", (0.3, 1.2, 0.4)), root=root)
    assert ik.skeleton.joint_names == moving.joint_names
    assert ik.solve(start=moving.rest_pose()).status.name == "REACHED"
