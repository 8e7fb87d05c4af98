"""Synovia's own text format: nothing lost on the way out and in, and every mistake named with its line."""

import math
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from conftest import UNCOMPILED
from synovia.errors import FileError, FormatError, InputError
from synovia.io.load import load_skeleton
from synovia.io.toml import FORMAT, read_skeleton, write_skeleton
from synovia.model import Joint, Kind, Mimic, Skeleton
from synovia.model.limits import Interval, SwingTwist

HEAD = 'schema = "synovia.skeleton/1"\n'
EXACT = 2e-15  # of rotations: a few roundings on the way through a quaternion; everything else is equal to the bit


def read(tmp_path: Path, body: str, head: str = HEAD) -> Skeleton:
    path = tmp_path / "body.toml"
    path.write_text(head + body, encoding="utf-8")
    return read_skeleton(path)


def assert_same(a: Skeleton, b: Skeleton) -> None:
    assert (a.name, a.meters_per_unit, a.up, a.forward) == (b.name, b.meters_per_unit, b.up, b.forward)
    assert a.parents == b.parents
    for x, y in zip(a.joints, b.joints, strict=True):
        for key in (
            "name",
            "kind",
            "preferred",
            "stiffness",
            "mass",
            "mimic",
            "body",
            "role",
            "tip",
            "limit",
            "channels",
        ):
            assert getattr(x, key) == getattr(y, key), (x.name, key)
        np.testing.assert_array_equal(x.rest[:3, 3], y.rest[:3, 3])
        np.testing.assert_array_equal(x.com, y.com)
        np.testing.assert_allclose(x.rest, y.rest, rtol=0, atol=EXACT)
        np.testing.assert_allclose(x.axis, y.axis, rtol=0, atol=EXACT)


numbers = st.floats(-1e6, 1e6, allow_subnormal=True)
positive = st.floats(0.0, 1e3)
vectors = st.tuples(numbers, numbers, numbers)
texts = st.text(min_size=1, max_size=8)
halves = st.tuples(st.floats(0.0, math.pi), st.floats(0.0, math.pi))
rotations = st.integers(0, 2**32 - 1).map(lambda seed: Rotation.from_quat(np.random.default_rng(seed).normal(size=4)))


@st.composite
def joints(draw, number: int) -> Joint:
    kind = draw(st.sampled_from(list(Kind)))
    rest = np.eye(4)
    rest[:3, 3] = draw(vectors)
    if draw(st.booleans()):
        rest[:3, :3] = draw(rotations).as_matrix()
    limit = None
    if kind in (Kind.HINGE, Kind.SLIDE) and draw(st.booleans()):
        low, high = sorted((draw(numbers), draw(numbers)))
        limit = Interval(low if draw(st.booleans()) else -math.inf, high if draw(st.booleans()) else math.inf)
    if kind in (Kind.BALL, Kind.FREE) and draw(st.booleans()):
        twist = sorted((draw(st.floats(-math.pi, math.pi)), draw(st.floats(-math.pi, math.pi))))
        frame = tuple(tuple(row) for row in draw(rotations).as_matrix().tolist())
        limit = SwingTwist(draw(halves), draw(halves), (twist[0], twist[1]), frame)
    scalar = kind in (Kind.HINGE, Kind.SLIDE)
    return Joint(
        draw(texts),
        draw(st.none() | st.integers(0, number - 1)) if number else None,
        kind,
        rest=rest,
        axis=np.eye(3)[draw(st.integers(0, 2))] @ draw(rotations).as_matrix() if scalar else np.zeros(3),
        limit=limit,
        preferred=draw(st.none() | numbers) if scalar else None,
        stiffness=draw(positive),
        mass=draw(positive),
        com=np.array(draw(vectors)),
        body=draw(st.none() | texts),
        role=draw(st.none() | texts),
        tip=draw(st.booleans()),
    )


@st.composite
def skeletons(draw) -> Skeleton:
    return Skeleton(
        [draw(joints(number)) for number in range(draw(st.integers(1, 5)))],
        name=draw(texts),
        meters_per_unit=draw(st.none() | st.floats(1e-6, 1e6)),
        up=draw(st.sampled_from([None, "x", "y", "z", "-y"])),
        forward=draw(st.sampled_from([None, "x", "-z"])),
    )


@settings(max_examples=8 if UNCOMPILED else 30)  # each has up to five joints of any kinds
@given(skeletons())
def test_round_trip_is_exact(tmp_path: Path, skeleton: Skeleton) -> None:
    path = tmp_path / "any.toml"
    write_skeleton(skeleton, path, force=True)
    assert FORMAT.looks_like(path.read_bytes()[:4096])
    again = read_skeleton(path)
    assert_same(skeleton, again)
    write_skeleton(again, path, force=True)
    assert_same(skeleton, read_skeleton(path))


def test_repeated_names_keep_their_parents(tmp_path: Path) -> None:
    chain = [Joint("a"), Joint("a", 0, Kind.BALL), Joint("b", 1), Joint("b", 0), Joint("c", 3), Joint("d", "c")]
    write_skeleton(Skeleton(chain), tmp_path / "s.toml")
    assert read_skeleton(tmp_path / "s.toml").parents == (-1, 0, 1, 0, 3, 4)
    body = '[[joint]]\nname = "a"\nkind = "fixed"\n' * 2 + '[[joint]]\nname = "b"\nkind = "fixed"\nparent = "a"\n'
    with pytest.raises(FormatError, match=r"body.toml.*is ambiguous"):
        read(tmp_path, body)


def test_coupling_comes_back(tmp_path: Path) -> None:
    x = np.array([1.0, 0.0, 0.0])
    hand = Skeleton(
        [
            Joint("a", kind=Kind.HINGE, axis=x),
            Joint("b", "a", Kind.SLIDE, axis=x, mimic=Mimic("a", -0.3, 0.1)),
            Joint("c", "a", Kind.SLIDE, axis=x, limit=Interval(-3, 1), mimic=Mimic("a", 2.0, binds=True)),
        ]
    )
    write_skeleton(hand, tmp_path / "s.toml")
    again = read_skeleton(tmp_path / "s.toml")
    assert again.joints[1].mimic == Mimic("a", -0.3, 0.1)
    assert again.joints[2].mimic == Mimic("a", 2.0, binds=True)
    assert again.rest_pose().q.tolist() == [0.0, 0.1, 0.0]
    assert again.value_range("a") == (-1.5, 0.5)


def test_notes_come_back(tmp_path: Path) -> None:
    notes = ('A "weld" was not kept.', "joint = 3\n[[joint]]")
    write_skeleton(Skeleton([Joint("a")], notes=notes), tmp_path / "s.toml")
    assert read_skeleton(tmp_path / "s.toml").notes == notes
    with pytest.warns(UserWarning, match='s.toml: A "weld" was not kept'):
        assert load_skeleton(tmp_path / "s.toml").notes == notes


def test_a_coupling_without_numbers_follows_one_to_one(tmp_path: Path) -> None:
    slide = 'kind = "slide"\naxis = [1, 0, 0]\n'
    body = f'[[joint]]\nname = "a"\n{slide}[[joint]]\nname = "b"\nparent = "a"\n{slide}mimic = {{ leader = "a" }}\n'
    assert read(tmp_path, body).joints[1].mimic == Mimic("a", 1.0, 0.0)


def test_written_by_hand_in_degrees(tmp_path: Path) -> None:
    body = read(
        tmp_path,
        """
        [[joint]]
        name = "a"
        kind = "ball"
        rpy_deg = [10, -20, 200]
        bone = [0, 2, 0]
        x_axis = [1, 0.5, 0]
        swing_x_deg = [-30, 90]
        swing_y = [-0.25, 0.5]

        [[joint]]
        name = "b"
        parent = "a"
        kind = "hinge"
        rpy = [0.1, 0.2, 0.3]
        axis = [0, 0, 2]
        limit_deg = [-inf, 90]
        preferred_deg = 45
        """,
    )
    a, b = body.joints
    assert body.name == "body"
    assert a.limit == SwingTwist.about((0, 1, 0), x=(math.pi / 6, math.pi / 2), y=(0.25, 0.5), x_axis=(1, 0, 0))
    np.testing.assert_allclose(
        a.rest[:3, :3], Rotation.from_euler("xyz", [10, -20, 200], degrees=True).as_matrix(), atol=1e-15
    )
    np.testing.assert_allclose(b.rest[:3, :3], Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix(), atol=1e-15)
    assert b.limit == Interval(-math.inf, math.pi / 2)
    assert b.preferred == math.pi / 4
    np.testing.assert_array_equal(b.axis, [0, 0, 1])


@pytest.mark.parametrize(
    ("x", "y"), [((-math.pi, math.pi), (0.0, 0.0)), ((0.0, math.pi), (-math.pi, 0.0)), ((-0.1, 0.2), (-0.3, 0.4))]
)
def test_swings_up_to_half_a_turn_with_rest_at_an_end(tmp_path: Path, x: tuple[float, float], y: tuple[float, float]):
    joint = f'[[joint]]\nname = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_x = {list(x)}\nswing_y = {list(y)}'
    limit = read(tmp_path, joint).joints[0].limit
    assert isinstance(limit, SwingTwist)
    assert (limit.x, limit.y) == ((-x[0], x[1]), (-y[0], y[1]))
    in_degrees = '[[joint]]\nname = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_x_deg = [-180, 180]'
    assert read(tmp_path, in_degrees).joints[0].limit == SwingTwist.about(
        (0, 0, 1), x=(math.pi, math.pi), y=(math.pi, math.pi), twist=(-math.pi, math.pi)
    )


@pytest.mark.parametrize(
    ("joint", "line", "says"),
    [
        ('kind = "ball"', 3, "joint has no name"),
        ('name = "b"', 3, "joint has no kind"),
        ('name = "b"\nkind = "bal"', 5, "kind is not known: expected one of fixed, hinge"),
        ('name = "b"\nkind = 3', 5, "kind is not text"),
        ('name = "b"\nkind = "ball"\nswing_z_deg = [0, 1]', 6, "unknown key 'swing_z_deg'. Did you mean 'swing_"),
        (
            'name = "b"\nkind = "fixed"\nparent = "roof"',
            6,
            "parent 'roof' of joint 'b' does not exist. Did you mean 'root'?",
        ),
        ('name = "b"\nkind = "fixed"\nparent = 1.5', 6, "parent is not a joint"),
        ('name = "b"\nkind = "fixed"\nparent = true', 6, "parent is not a joint"),
        ('name = "b"\nkind = "fixed"\nposition = [1, 2]', 6, "expected a list of 3 numbers"),
        ('name = "b"\nkind = "fixed"\nposition = "up"', 6, "expected a list of 3 numbers"),
        ('name = "b"\nkind = "fixed"\nposition = [0, nan, 0]', 6, "position is not finite"),
        (
            'name = "b"\nkind = "fixed"\nposition = [0, true, 0]',
            6,
            "position is not a number: expected a number, got True",
        ),
        ('name = "b"\nkind = "fixed"\nposition = [0, 1e999, 0]', 6, "position is not finite"),
        (f'name = "b"\nkind = "fixed"\nmass = {"9" * 400}', 6, "mass is not finite"),
        ('name = "b"\nkind = "fixed"\nmass = 1979-05-27', 6, "mass is not a number"),
        ('name = "b"\nkind = "fixed"\nmass = -1', 3, "mass and stiffness not negative"),
        ('name = "b"\nkind = "fixed"\ntip = 1', 6, "expected true or false"),
        ('name = "b"\nkind = "fixed"\nrotation_xyzw = [0, 0, 0, 0]', 6, "expected a unit quaternion"),
        ('name = "b"\nkind = "fixed"\nrotation_xyzw = [0, 0, 0, 1]\nrpy_deg = [0, 0, 1]', 6, "both"),
        ('name = "b"\nkind = "fixed"\nrpy = [0, 0, 1]\nrpy_deg = [0, 0, 1]', 7, "both rpy and rpy_deg are given"),
        ('name = "b"\nkind = "fixed"\nlimit = [0, 1]', 6, "limit of a FIXED joint"),
        ('name = "b"\nkind = "hinge"', 3, "axis: expected a vector"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 0]', 6, "axis: expected a vector"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 1]\nlimit_deg = [10, -10]', 3, "limits: expected lower <= upper"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 1]\nlimit = [nan, 1]', 7, "limit is not finite"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 1]\ntwist = [0, 1]', 7, "a hinge joint cannot have twist"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 1]\nmimic = { ratio = 2 }', 7, "mimic has no leader"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 1]\nmimic = { lead = "a" }', 7, "Did you mean 'leader'"),
        ('name = "b"\nkind = "hinge"\naxis = [0, 0, 1]\nmimic = "root"', 7, "mimic has the wrong form"),
        ('name = "b"\nkind = "slide"\naxis = [0, 0, 1]\nlimit_deg = [0, 1]', 7, "a slide joint cannot have limit_deg"),
        ('name = "b"\nkind = "ball"\nswing_x_deg = [0, 10]', 3, "expected bone (and x_axis), or frame"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_x_deg = [5, 10]', 7, "swing_x is out of range"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_y_deg = [-181, 10]', 7, "swing_y is out of range"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_y = [-1, -0.5]', 7, "swing_y is out of range"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_x = [-0.5, 3.2]', 7, "swing_x is out of range"),
        (
            'name = "b"\nkind = "ball"\nbone = [0, 0, 1]\nswing_x = [-1, 0.5]\nframe = [1, 0, 0, 0, 1, 0, 0, 0, 1]',
            3,
            "one frame",
        ),
        ('name = "b"\nkind = "ball"\nframe = [1, 0, 0, 0, 1, 0, 0, 0, 1]\nx_axis = [1, 0, 0]', 3, "one frame"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 1]\ntwist_deg = [20, 10]', 7, "twist limit: expected"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 0]\ntwist_deg = [0, 10]', 3, "the bone: expected a vector"),
        ('name = "b"\nkind = "ball"\nbone = [0, 0, 1]\nx_axis = [0, 0, 1]', 7, "not parallel to the bone"),
        ('name = "b"\nkind = "ball"\nframe = [1, 0, 0, 0, 1, 0, 0, 0, -1]', 3, "limit frame: expected an orthonormal"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, joint: str, line: int, says: str) -> None:
    text = "[[joint]]\n" + joint + '\n[[joint]]\nname = "root"\nkind = "fixed"\n'
    with pytest.raises(FormatError) as caught:
        read(tmp_path, text, HEAD + "\n")
    assert says in str(caught.value)
    assert f"body.toml, line {line}, joint " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "file is empty"),
        ("joint = [", "is not TOML"),
        (f'[[joint]]\nname = "b"\nmass = {"9" * 4000}', "line 3: a number has too many digits"),
        ('schema = "synovia.skeleton/2"', 'expected schema = "synovia.skeleton/1"'),
        ("[[joint]]", "expected schema"),
        (HEAD, "has no joints"),
        (HEAD + "joint = []", "at least one joint"),
        (HEAD + "joint = 3", "has no joints"),
        (HEAD + "joint = [3]", "has no joints"),
        (HEAD + "[joint]\nname = 1", "has no joints"),
        (HEAD + "nam = 1\njoint = []", "Did you mean 'name'"),
        (HEAD + 'up = "w"\njoint = [{ name = "a", kind = "ball" }]', "up is not known: expected one of"),
        (
            HEAD + 'meters_per_unit = 0\njoint = [{ name = "a", kind = "ball" }]',
            "meters_per_unit: expected a number above 0",
        ),
        (HEAD + 'joint = [{ name = "a", kind = "ball", parent = "a" }]', "its own ancestor"),
        (HEAD + 'joint = [{ name = "a", kind = "ball", parent = -1 }]', "parent -1 of joint 'a' does not exist"),
        (HEAD + 'joint = [{ name = "a", kind = "ball", mass = "1" }]', "joint 'a': mass is not a number"),
        (HEAD + 'joint = [{ name = "a", kind = "slide", axis = [1, 0, 0], mimic = { leader = "c" } }]', "named 'c'"),
        (HEAD + "joint = " + "[" * 100_000, "nested too deeply"),
        (HEAD + "x = " + "1" * 5000, "too many digits"),
        (HEAD + "x." * 20_000 + "x = 1", "line 2: dotted key: expected at most"),
    ],
)
def test_files_that_are_no_skeletons(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "body.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((FormatError, FileError)) as caught:
        read_skeleton(path)
    assert says in str(caught.value)
    assert "body.toml" in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(HEAD.encode() + b"\nname = '\xff'")
    with pytest.raises(FormatError, match=r"s.toml, line 3: is not UTF-8"):
        read_skeleton(tmp_path / "s.toml")


def test_truncated_anywhere_never_escapes(tmp_path: Path) -> None:
    x = np.array([1.0, 0.0, 0.0])
    limit = SwingTwist.about((0, 1, 0), x=(0.5, 1.0), y=(0.2, 0.3))
    whole = tmp_path / "whole.toml"
    write_skeleton(Skeleton([Joint("a", kind=Kind.BALL, limit=limit), Joint("b", "a", Kind.HINGE, axis=x)]), whole)
    data = whole.read_bytes()
    for end in range(1, len(data), 3):
        (tmp_path / "cut.toml").write_bytes(data[:end])
        with suppress(FormatError):
            read_skeleton(tmp_path / "cut.toml")


def test_existing_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("mine")
    with pytest.raises(FileError, match="force"):
        write_skeleton(Skeleton([Joint("a")]), path)
    assert path.read_text() == "mine"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="UTF-8"):
        write_skeleton(Skeleton([Joint("\ud800")]), tmp_path / "s.toml")
    assert not list(tmp_path.iterdir())


def test_other_formats_are_left_alone() -> None:
    for head in (b"<robot/>", b'schema = "other/1"', b"HIERARCHY\nROOT", b'# synovia.skeleton/1\nx = "schema"'):
        assert not FORMAT.looks_like(head)


def test_the_line_of_a_later_joint_is_named(tmp_path: Path) -> None:
    good = '[[joint]]\nname = "{}"\nkind = "fixed"\n'
    with pytest.raises(FormatError, match=r"body.toml, line 11, joint 'c'"):
        read(tmp_path, good.format("a") + good.format("b") + '[[joint]]\nname = "c"\nkind = "wheel"\n', HEAD + "\n")
