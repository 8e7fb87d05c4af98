"""Which pairs of links can collide: known bodies, excluded pairs, and the same answers as single distances."""

import pickle
import re
from itertools import combinations

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from synovia.kernels import layout
from synovia.model.pose import random_values, world_frames
from synovia.model.shapes.body import packed_shapes
from synovia.model.shapes.distances import contact_rows
from synovia.model.shapes.pairs import ALWAYS, AT_REST, EXCLUDED, MOST_LINKS, NEIGHBOURS, RIGID, _touches

BALL = sy.Sphere(radius=0.2)


def at(x=0.0, y=0.0, z=0.0):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[:3, 3] = (x, y, z)
    return T


def hinge(name, parent, rest, shapes=(BALL,), axis=(0, 0, 1), **options):
    """Return a hinge about z."""
    return sy.Joint(name, parent, sy.Kind.HINGE, rest, axis=axis, shapes=shapes, **options)


def chain(count=5, **options):
    """Return links one unit apart that turn about z."""
    joints = [sy.Joint("l0", shapes=(BALL,))]
    joints += [hinge(f"l{k}", f"l{k - 1}", at(1.0)) for k in range(1, count)]
    return sy.Skeleton(joints, **options)


def reason(skeleton, a, b):
    """Return why a pair is left out, None if it counts."""
    found = sy.shapes.self_pairs(skeleton)
    assert ((a, b) in found.pairs) != ((a, b) in found.left_out)
    return found.left_out.get((a, b))


def test_neighbours_are_left_out_and_others_count():
    found = sy.shapes.self_pairs(chain())
    assert found.pairs == (("l0", "l2"), ("l0", "l3"), ("l0", "l4"), ("l1", "l3"), ("l1", "l4"), ("l2", "l4"))
    assert found.left_out == {(f"l{k}", f"l{k + 1}"): NEIGHBOURS for k in range(4)}
    assert found.rows.tolist() == [[0, 2], [0, 3], [0, 4], [1, 3], [1, 4], [2, 4]]
    assert not found.notes


def test_the_share_of_poses_is_right():
    """Two links apart, the balls meet if the joint between them folds to within 0.4: the angle is known."""
    found = sy.shapes.self_pairs(chain(3))
    closed = 2.0 * np.arcsin(0.2)  # half the angle at which balls of radius 0.2 on bars of length 1 touch
    assert found.touching["l0", "l2"] == pytest.approx(closed / np.pi, abs=0.02)
    assert found.touching["l0", "l1"] == 0.0


def test_links_without_a_joint_between_them():
    body = sy.Skeleton([
        sy.Joint("base", shapes=(BALL,)),
        sy.Joint("stand", "base", rest=at(z=2.0), shapes=(BALL,)),
        hinge("locked", "stand", at(1.0), limit=sy.Interval(0.3, 0.3)),
        hinge("arm", "locked", at(1.0)),
        sy.Joint("tool", "arm", rest=at(1.0), shapes=(BALL,)),
    ])  # fmt: skip
    for a, b in (("base", "stand"), ("base", "locked"), ("stand", "locked"), ("arm", "tool")):
        assert reason(body, a, b) == RIGID
        assert (a, b) not in sy.shapes.self_pairs(body).touching
    assert reason(body, "locked", "arm") == NEIGHBOURS
    assert reason(body, "base", "arm") is None
    assert reason(body, "locked", "tool") is None  # a tool on a stick may bend back: neighbours are at the joint itself


def test_joints_that_are_close_together_count_as_one():
    body = sy.Skeleton([
        sy.Joint("hips", shapes=(BALL,)),
        hinge("flex", "hips", at(0.5), shapes=()),
        hinge("roll", "flex", at(0.1), shapes=(), axis=(1, 0, 0)),
        hinge("leg", "roll", at(0.05), axis=(0, 1, 0)),
    ])  # fmt: skip
    assert reason(body, "hips", "leg") == NEIGHBOURS


def test_a_hand_is_no_neighbour_of_a_chest_because_the_arm_has_no_shapes():
    body = sy.with_shapes(chain(4), {"l1": [], "l2": []})
    assert sy.shapes.self_pairs(body).pairs == (("l0", "l3"),)


def test_pairs_that_touch_at_rest():
    body = sy.with_shapes(chain(3), {"l0": [sy.Sphere(radius=0.6)], "l2": [sy.Sphere(center=(-1, 0, 0), radius=0.5)]})
    assert reason(body, "l0", "l2") == AT_REST
    assert not sy.shapes.self_pairs(body).notes  # they touch often


def test_a_pair_that_is_apart_at_rest_alone():
    large = sy.Sphere(radius=0.5)
    slide = {"kind": sy.Kind.SLIDE, "rest": at(1.01), "axis": (-1, 0, 0), "limit": sy.Interval(0.0, 1.0)}
    body = sy.Skeleton([
        sy.Joint("root", shapes=(large,)),
        hinge("above", "root", at(), shapes=(sy.Sphere(center=(0, 0, 5), radius=0.1),)),
        sy.Joint("slide", "above", shapes=(large,), **slide),
    ])  # fmt: skip
    assert reason(body, "root", "slide") == ALWAYS
    assert sy.shapes.self_pairs(body).touching["root", "slide"] == pytest.approx(0.99, abs=0.01)


def test_a_pair_that_touches_at_rest_but_rarely_is_noted():
    end = sy.Sphere(center=(2, 0, 0), radius=0.1)  # where the last link is at rest
    found = sy.shapes.self_pairs(sy.with_shapes(chain(3), {"l0": [end], "l2": [sy.Sphere(radius=0.1)]}))
    assert found.left_out["l0", "l2"] == AT_REST
    assert found.touching["l0", "l2"] < 0.1
    (note,) = found.notes
    assert "l0 and l2" in note


def test_a_rest_pose_that_no_body_can_take_does_not_decide():
    """Both legs lie on one another at rest, as where a file has all bones along one axis."""
    joints = [sy.Joint("hips", shapes=(BALL,))]
    for side in "lr":
        for k in range(6):
            above = "hips" if k == 0 else f"{side}{k - 1}"
            shape = BALL if k < 2 else sy.Sphere(radius=0.6)
            joints.append(sy.Joint(f"{side}{k}", above, sy.Kind.BALL, at(1.0), shapes=(shape,)))
    found = sy.shapes.self_pairs(sy.Skeleton(joints))
    assert found.left_out["l0", "r0"] == AT_REST  # at the hips themselves, where the legs touch in all poses
    assert {("l4", "r4"), ("l5", "r5")} <= set(found.pairs)
    assert "distant links" in found.notes[-1]


def test_pairs_that_a_file_excludes(tmp_path):
    excluded = chain(excluded_pairs=[("l3", "l0"), ("l0", "l1")])
    assert reason(excluded, "l0", "l3") == EXCLUDED
    assert reason(excluded, "l0", "l1") == NEIGHBOURS  # the first reason
    assert reason(excluded, "l0", "l2") is None
    sphere = '<collision><geometry><sphere radius="0.2"/></geometry></collision>'
    links = "".join(f'<link name="l{k}">{sphere}</link>' for k in range(4))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="1 0 0"/>'
        f'<axis xyz="0 0 1"/></joint>'
        for k in range(1, 4)
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{links}{joints}</robot>')
    (tmp_path / "r.srdf").write_text(
        '<robot name="r"><disable_collisions link1="l3" link2="l0" reason="Never"/></robot>'
    )
    robot = sy.load_skeleton(tmp_path / "r.urdf")
    assert sy.shapes.self_pairs(robot).left_out["l0", "l3"] == EXCLUDED
    assert sy.shapes.self_pairs(robot).pairs == (("l0", "l2"), ("l1", "l3"))
    told = run("inspect", tmp_path / "r.urdf", "--pairs", "--json").data["self_pairs"]
    assert [pair["links"] for pair in told["pairs"]] == [["l0", "l2"], ["l1", "l3"]]
    by_links = {tuple(pair["links"]): pair for pair in told["left_out"]}
    assert by_links["l0", "l3"]["reason"] == EXCLUDED
    assert told["samples"] == 2000
    out = run("inspect", tmp_path / "r.urdf", "--pairs").out
    assert "2 of 6 pairs of links are checked" in out
    assert "left out, excluded by the file: 1" in out
    assert run("inspect", tmp_path / "r.urdf", "--json").data["self_pairs"] is None


def test_pairs_of_mjcf(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "m.xml").write_text("""<mujoco><worldbody><body name="a"><geom size="0.2"/>
      <body name="b" pos="1 0 0"><joint axis="0 0 1"/><geom size="0.2"/>
      <body name="c" pos="1 0 0"><joint name="c1" axis="0 0 1"/><joint name="c2" axis="0 1 0"/><geom size="0.2"/>
      <body name="d" pos="1 0 0"><joint axis="0 0 1"/><geom size="0.2"/>
      <body name="e" pos="1 0 0"><joint axis="0 0 1"/><geom size="0.2" contype="2" conaffinity="2"/>
      <geom size="0.1" contype="0" conaffinity="0"/></body></body></body></body>
      <body name="other" pos="0 0 3"><joint axis="1 0 0"/><geom size="0.2" contype="2" conaffinity="2"/></body></body>
      </worldbody><contact><exclude body1="a" body2="d"/></contact></mujoco>""")
    found = sy.shapes.self_pairs(sy.load_skeleton(tmp_path / "m.xml"))
    assert {frozenset(pair) for pair in found.pairs} == {
        frozenset(pair) for pair in ("ac", "bd", ("e", "other"))
    }  # fmt: skip
    assert found.left_out["b", "c"] == NEIGHBOURS
    assert found.left_out["a", "d"] == EXCLUDED


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["arm7", "humanoid", "humanoid_hands", "quadruped"])
def test_bundled_models(name):
    body = sy.bundled(name)
    found = sy.shapes.self_pairs(body)
    count = len(body.shapes)
    assert len(found.pairs) + len(found.left_out) == count * (count - 1) // 2
    assert set(found.pairs).isdisjoint(found.left_out)
    assert found is sy.shapes.self_pairs(body)  # found once
    assert all(
        body.link_key(a) == p and body.link_key(b) == q for (a, b), (p, q) in zip(found.rows, found.pairs, strict=True)
    )
    assert max(found.touching[pair] for pair in found.pairs) < 0.95
    links = {link for pair in found.pairs for link in pair}
    assert len(links) >= count - 1


@pytest.mark.parametrize(
    "pair",
    [
        ("left_hand", "chest"), ("left_hand", "head"), ("left_hand", "right_hand"), ("left_foot", "right_foot"),
        ("left_lower_leg", "right_lower_leg"), ("left_lower_arm", "chest"), ("left_hand", "left_upper_leg"),
    ],
)  # fmt: skip
def test_what_must_stay_apart_in_a_person_counts(pair):
    assert {frozenset(pair) for pair in sy.shapes.self_pairs(sy.bundled("humanoid")).pairs} >= {frozenset(pair)}


def test_another_root_has_the_same_pairs():
    for name in ("arm7", "humanoid"):
        body = sy.bundled(name)
        for root in ("free", "fixed", "x,yaw"):
            moved = body.with_root(root)
            found, own = sy.shapes.self_pairs(moved), sy.shapes.self_pairs(body)
            assert (found.pairs, found.left_out, found.touching) == (own.pairs, own.left_out, own.touching)
            assert [tuple(map(moved.link_key, row)) for row in found.rows.tolist()] == list(found.pairs)


def test_copies_and_new_bodies_find_the_same():
    body = sy.bundled("humanoid")
    found = sy.shapes.self_pairs(body)
    again = sy.shapes.self_pairs(pickle.loads(pickle.dumps(body)))
    assert (again.pairs, again.left_out, again.touching) == (found.pairs, found.left_out, found.touching)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).rows, found.rows)
    stiff = body.with_limits({"left_lower_leg": (0.0, 0.1)})
    assert sy.shapes.self_pairs(stiff).touching != found.touching


def test_mimic_joints_move_with_their_leaders():
    """A follower that folds as its leader opens: the outer link keeps its distance."""
    body = chain(4)
    joints = list(body.joints)
    joints[2] = hinge("l2", "l1", at(1.0), mimic=sy.Mimic("l1", ratio=-1.0))
    joints[3] = hinge("l3", "l2", at(1.0), limit=sy.Interval(0.0, 0.0))
    found = sy.shapes.self_pairs(sy.Skeleton(joints))
    assert found.left_out["l2", "l3"] == RIGID
    assert found.touching["l0", "l2"] < 0.2


@pytest.mark.parametrize(
    "body",
    [
        sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)]),
        sy.Skeleton([sy.Joint("only", shapes=(BALL,))]),
        sy.Skeleton([sy.Joint("a", shapes=(BALL,)), sy.Joint("b", "a", shapes=(BALL,))]),
        sy.Skeleton([sy.Joint("a", shapes=(BALL,)), sy.Joint("b", shapes=(BALL,))]),
        sy.with_shapes(chain(2), {"l0": []}),
    ],
    ids=["no shapes", "one link", "fixed", "two roots", "one of two"],
)
def test_bodies_without_pairs(body):
    found = sy.shapes.self_pairs(body)
    assert not found.pairs
    assert found.rows.shape == (0, 2)
    assert packed_shapes(body).shape_pairs(found.rows).shape == (0, 2)
    assert found.report().startswith("0 of")


def test_two_bodies_in_one_skeleton():
    body = sy.Skeleton([sy.Joint("a", shapes=(BALL,)), hinge("b", None, at(0.3)), hinge("c", "b", at(5.0))])
    assert reason(body, "a", "b") == AT_REST
    assert reason(body, "a", "c") is None
    assert reason(body, "b", "c") == NEIGHBOURS


def test_what_cannot_be_asked():
    with pytest.raises(sy.InputError, match="skeleton"):
        sy.shapes.self_pairs("arm7")
    many = sy.Skeleton([sy.Joint(f"j{k}", shapes=(BALL,)) for k in range(MOST_LINKS + 1)])
    with pytest.raises(sy.InputError, match=r"at most 1000, got 1001"):
        sy.shapes.self_pairs(many)


@pytest.mark.slow
def test_pairs_that_cannot_be_far_apart_are_listed():
    """Those that a clearance goal of this distance names; measured apart from it in other poses."""
    arm = sy.bundled("arm7")
    told = run("inspect", "arm7", "--pairs", "--clearance", 0.05, "--json").data["self_pairs"]
    assert told["clearance"] == 0.05
    assert ["joint6", "hand"] in told["close"]
    assert all(pair in [one["links"] for one in told["pairs"]] for pair in told["close"])
    poses = [arm.random_pose(seed) for seed in range(100)]
    for pair in told["pairs"]:
        a, b = pair["links"]
        gaps = [
            min(
                sy.shapes.distance(u, v, transform_a=pose.transform(a), transform_b=pose.transform(b)).distance
                for u in arm.shapes[a]
                for v in arm.shapes[b]
            )
            for pose in poses
        ]
        share = np.mean(np.array(gaps) < 0.05)
        assert share > 0.85 if [a, b] in told["close"] else share < 0.99
    notes = sy.solve(arm, [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.ClearanceGoal(0.05)]).notes
    assert all(any(f"{a!r} and {b!r}" in note for note in notes) for a, b in told["close"])
    out = run("inspect", "arm7", "--pairs", "--clearance", 0.05).out
    assert "nearer than 0.05 m in at least 95 % of 200 random poses" in out
    assert "  joint6 and hand\n" in out
    assert run("inspect", "arm7", "--pairs", "--clearance", 0, "--json").data["self_pairs"]["close"] == []
    bare = run("inspect", "arm7", "--pairs", "--json").data["self_pairs"]
    assert (bare["clearance"], bare["close"]) == (None, None)
    for words in (("arm7",), ("arm7", "--shapes")):
        refused = run("inspect", *words, "--clearance", 0.05)
        assert (refused.code, "expected --pairs" in refused.err) == (2, True)


def test_pairs_of_a_world_are_refused(tmp_path):
    sy.save_world(sy.World([BALL]), tmp_path / "w.toml")
    ran = run("inspect", tmp_path / "w.toml", "--pairs")
    assert ran.code == 2
    assert re.search("--pairs", ran.err)


def every_kind(rng):
    """Return one shape of each kind."""
    c = 0.3 * rng.normal(size=(5, 3))
    return [
        sy.Sphere(center=c[0], radius=0.2),
        sy.Capsule(a=c[1], b=c[1] + rng.normal(size=3) * 0.3, radius=0.1),
        sy.Box(center=c[2], size=rng.uniform(0.1, 0.5, 3), rotation=sy.Rotation.from_rotvec(rng.normal(size=3))),
        sy.Cylinder(center=c[3], radius=0.15, length=0.4, rotation=sy.Rotation.from_rotvec(rng.normal(size=3))),
        sy.ConvexHull(c[4] + 0.2 * rng.normal(size=(12, 3))),
    ]


def placed(skeleton, frames):
    """Return the shapes of a body in the world."""
    packed = packed_shapes(skeleton)
    data = packed.packed.shapes.copy()
    for row, joint in enumerate(packed.owners):
        R, p = frames[joint, :9].reshape(3, 3), frames[joint, 9:]
        data[row, :9] = (R @ data[row, :9].reshape(3, 3)).ravel()
        data[row, 9:12] = R @ data[row, 9:12] + p
    return packed.packed._replace(shapes=data)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_links_touch_where_a_distance_is_not_above_zero(seed):
    """Shares are those of single distances in the same poses, for all kinds of shapes; so are the pairs of shapes."""
    rng = np.random.default_rng(seed)
    body = sy.with_shapes(chain(5), {f"l{k}": every_kind(rng) for k in range(5)})
    found = sy.shapes.self_pairs(body)
    packed = packed_shapes(body)
    q = random_values(body, 200, 0, rows=range(1, 5))
    full = random_values(body, found.samples, 0, rows=range(1, 5))
    assert np.array_equal(full[:200], q)
    rows = {body.link_key(int(link[layout.LINK_ROW])): int(link[layout.LINK_ROW]) for link in packed.links}
    pairs = list(combinations(rows, 2))
    each = [packed.shape_pairs(np.array([[rows[a], rows[b]]], np.int32)) for a, b in pairs]
    assert all(len(one) == 25 for one in each)
    assert all((packed.owners[one] == (rows[a], rows[b])).all() for one, (a, b) in zip(each, pairs, strict=True))
    least = np.array([
        [contact_rows(placed(body, frames), one)[:, layout.GAP_SIZE].min() for one in each]
        for frames in world_frames(body, q)
    ])  # fmt: skip
    for k, pair in enumerate(pairs):
        assert found.touching[pair] == pytest.approx((least[:, k] <= 0.0).mean(), abs=0.12)  # of 200 and of 2000 poses
    links = np.array(list(combinations(range(5), 2)), np.int32)
    assert _touches(body, packed, links, q).tolist() == (least <= 0.0).sum(0).tolist()


def test_bounding_spheres_contain_their_shapes():
    rng = np.random.default_rng(5)
    body = sy.with_shapes(chain(2), {"l0": every_kind(rng), "l1": every_kind(rng)})
    packed = packed_shapes(body)
    assert packed is packed_shapes(body)
    assert packed.owners.tolist() == [0] * 5 + [1] * 5
    shapes = [shape for joint in body.joints for shape in joint.shapes]
    for way in rng.normal(size=(200, 3)):
        way = way / np.linalg.norm(way)
        for shape, row, owner in zip(shapes, packed.packed.shapes, packed.owners, strict=True):
            plane = sy.HalfSpace(point=1e3 * way, normal=-way)
            farthest = 1e3 - sy.shapes.distance(shape, plane).distance
            assert farthest <= row[layout.ORIGIN : layout.HALF_SIZES] @ way + row[layout.EXTENT] + 1e-9
            cover = packed.covers[owner]
            assert farthest <= cover[:3] @ way + cover[3] + 1e-9
    with pytest.raises(ValueError, match="read-only"):
        packed.covers[0] = 0.0


def panda(folder):
    """Return the arm with the spheres of its self-collision model."""
    text = (folder / "worlds" / "franka_spheres.yml").read_text(encoding="utf-8").split("self_collision_buffer")[0]
    spheres: dict[str, list[sy.Sphere]] = {}
    for link, center, radius in re.findall(r'^  (\w+):|"center": \[(.*)\]\s+"radius": (\S+)', text, re.MULTILINE):
        if link:
            own = spheres.setdefault(link, [])
        else:
            own.append(sy.Sphere(center=[*map(float, center.split(","))], radius=float(radius)))
    return sy.with_shapes(sy.load_skeleton(folder / "robot" / "panda.urdf"), spheres)


@pytest.mark.shared_data
@pytest.mark.compiled
def test_pairs_of_a_panda(shared_data):
    found = sy.shapes.self_pairs(panda(shared_data))
    names = {pair: why for pair, why in found.left_out.items() if why != NEIGHBOURS}
    assert names == {
        ("panda_link7", "panda_hand"): RIGID,
        ("panda_link5", "panda_hand"): AT_REST,  # the hand lies beside the forearm where joint 6 is at 0
        ("panda_leftfinger", "panda_rightfinger"): AT_REST,  # the gripper is closed
    }
    assert sum(why == NEIGHBOURS for why in found.left_out.values()) == 9
    assert len(found.pairs) == 43
    assert "panda_link5 and panda_hand" in found.notes[0]


@pytest.mark.shared_data
@pytest.mark.compiled
def test_links_touch_where_coal_finds_a_collision(shared_data):
    coal = pytest.importorskip("coal")
    body = panda(shared_data)
    packed = packed_shapes(body)
    things = [coal.Sphere(shape.radius) for joint in body.joints for shape in joint.shapes]
    links = np.array([*combinations(range(len(packed.links)), 2)], np.int32)
    rows = packed.links[:, layout.LINK_ROW]
    q = random_values(body, 20, 1)
    for one, frames in zip(q, world_frames(body, q), strict=True):
        places = placed(body, frames).shapes
        there = [coal.Transform3s(place[:9].reshape(3, 3), place[9:12]) for place in places]
        hits = [
            any(
                coal.collide(things[i], there[i], things[j], there[j], coal.CollisionRequest(), coal.CollisionResult())
                for i, j in packed.shape_pairs(rows[[pair]])
            )
            for pair in links
        ]
        assert (_touches(body, packed, links, one[None]) > 0).tolist() == hits


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["robot/ur5e_nomesh.xml", "robot/g1_menagerie_nomesh.xml"])
def test_contacts_of_mujoco_are_between_pairs_that_count(shared_data, name):
    mujoco = pytest.importorskip("mujoco")
    body, model = sy.load_skeleton(shared_data / name), mujoco.MjModel.from_xml_path(str(shared_data / name))
    data, found, packed = mujoco.MjData(model), sy.shapes.self_pairs(body), packed_shapes(body)
    place = {int(link[layout.LINK_ROW]): k for k, link in enumerate(packed.links)}
    links = np.array([[place[a], place[b]] for a, b in found.rows.tolist()], np.int32)
    for q in random_values(body, 500, 3):
        data.qpos[:] = sy.to_qpos(sy.Pose(body, q), model)
        mujoco.mj_forward(model, data)
        contacts = [(contact.geom1, contact.geom2) for contact in data.contact if contact.dist <= 0.0]
        theirs = {frozenset(model.body(model.geom_bodyid[geom]).name for geom in pair) for pair in contacts}
        hits = _touches(body, packed, links, q[None]) > 0
        assert {frozenset(pair) for pair, hit in zip(found.pairs, hits, strict=True) if hit} == theirs


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_clip_whose_bones_lie_in_one_line_keeps_its_legs_apart(shared_data):
    body = sy.with_shapes(sy.load_skeleton(shared_data / "motion" / "lafan1_walk1_head.bvh"))
    found = sy.shapes.self_pairs(body)
    assert {("LeftFoot", "LeftForeArm"), ("LeftFoot", "RightFoot")} <= set(found.pairs)
    assert "distant links" in found.notes[-1]
