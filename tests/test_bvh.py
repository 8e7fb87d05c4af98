"""BVH: positions against an evaluation straight from the text, hard and broken files, and what is written."""

import itertools
import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia.io.bvh as bvh
from conftest import UNCOMPILED
from synovia.errors import FileError, FormatError, SynoviaError, UnknownNameError
from synovia.io.bvh import write_bvh
from synovia.io.load import load_skeleton
from synovia.io.nodes.euler import from_quat, to_quat
from synovia.model import MAX_JOINTS, Joint, Kind, Skeleton
from synovia.model.geometry import quat_to_matrix, rigid
from synovia.model.motion import Motion

HANG = 10.0  # seconds: no measurement, only far from hanging, also on a busy machine
MORE = MAX_JOINTS + 5000  # joints than there may be
TREES = 30  # random skeletons; each has joints of most kinds


def read_skeleton(path: Path) -> Skeleton:
    return bvh.FORMAT.read(path).skeleton


def read_motions(path: Path) -> list[Motion]:
    return bvh.FORMAT.read(path).motions()


REAL = ["bvhtoolbox_walk01", "cmu_07_01_walk", "cmu_jumping_jacks", "pymo_8walk"]
EDGE = ["bom", "crlf", "name_with_colon", "ok", "one_dof_joint", "one_line_braces", "rot_before_pos"]
ROTATIONS = ["Xrotation", "Yrotation", "Zrotation"]
POSITIONS = ["Xposition", "Yposition", "Zposition"]


# --- an evaluation of its own: 4x4 products straight from the words of the file ---------------------------------------


def turn(axis: str, degrees: np.ndarray) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    out = np.tile(np.eye(4), (len(degrees), 1, 1))
    out[:, i, i] = out[:, j, j] = c
    out[:, j, i], out[:, i, j] = s, -s
    return out


def evaluate(text: str) -> tuple[list[np.ndarray], list[list[str]], np.ndarray]:
    """Return, by frame, the positions of all nodes in the file's order; the channels of each node; the table.

    Only for well-formed files whose joint names hold no spaces.
    """
    head, _, body = text.lstrip("\ufeff").partition("MOTION")
    words = head.replace("{", " { ").replace("}", " } ").split()
    nodes: list[tuple[int, np.ndarray, list[str]]] = []
    stack: list[int] = []
    i = 0
    while i < len(words):
        word = words[i].lower()
        if word in ("root", "joint", "end"):
            nodes.append((stack[-1] if stack else -1, np.zeros(3), []))
            stack.append(len(nodes) - 1)
        elif word == "offset":
            nodes[stack[-1]][1][:] = [float(w) for w in words[i + 1 : i + 4]]
        elif word == "channels":
            n = int(words[i + 1])
            nodes[stack[-1]][2].extend(w.lower() for w in words[i + 2 : i + 2 + n])
        elif word == "}":
            stack.pop()
        i += 1
    values = body.replace(":", " ").split()
    frames = int(values[1])
    table = np.array([float(v) for v in values[5:]]).reshape(frames, -1)
    numbers = iter(table.T)  # of all frames
    world: list[np.ndarray] = []
    for parent, offset, channels in nodes:
        shift, rotation = np.tile(np.eye(4), (frames, 1, 1)), np.eye(4)
        shift[:, :3, 3] = offset
        for channel in channels:
            if channel.endswith("position"):
                shift[:, "xyz".index(channel[0]), 3] = next(numbers)
            else:
                rotation = rotation @ turn(channel[0], next(numbers))
        world.append((world[parent] if parent >= 0 else np.eye(4)) @ shift @ rotation)
    out = list(np.stack([matrices[:, :3, 3] for matrices in world], axis=1))
    return out, [channels for _, _, channels in nodes], table


def last_rows(motion: Motion) -> list[int]:
    """Rows that end a joint of the file."""
    return [row for row, joint in enumerate(motion.skeleton.joints) if joint.channels is not None]


def check_positions(path: Path) -> Motion:
    motion = read_motions(path)[0]
    expected, channels, table = evaluate(path.read_text("utf-8-sig"))
    rows = last_rows(motion)
    assert [[c.lower() for c in motion.skeleton.joints[row].channels] for row in rows] == channels
    assert len(motion) == len(table)
    got = motion.positions()[:, rows]
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(got, np.array(expected), rtol=0, atol=1e-9 * scale)
    return motion


def table_of(path: Path) -> tuple[np.ndarray, list[str]]:
    _, channels, table = evaluate(path.read_text("utf-8-sig"))
    return table, [c for some in channels for c in some]


def check_written(motion: Motion, path: Path) -> Motion:
    """Write, read, and compare positions and structure."""
    write_bvh(motion, path)
    again = check_positions(path)
    scale = max(1.0, np.abs(motion.positions()).max())
    np.testing.assert_allclose(again.positions(), motion.positions(), rtol=0, atol=1e-9 * scale)
    assert again.skeleton.joint_names == motion.skeleton.joint_names
    assert again.skeleton.parents == motion.skeleton.parents
    for a, b in zip(again.skeleton.joints, motion.skeleton.joints, strict=True):
        assert (a.kind, a.channels, a.body, a.tip) == (b.kind, b.channels, b.body, b.tip)
        np.testing.assert_allclose(a.rest, b.rest, rtol=1e-11, atol=1e-11)
    assert again.fps == pytest.approx(motion.fps, rel=1e-15)
    return again


def check_values(path: Path, again: Path) -> None:
    """The same numbers as in the first file, angles up to whole turns."""
    (before, names), (after, same) = table_of(path), table_of(again)
    assert names == same
    angle = np.array([name.endswith("rotation") for name in names], bool)
    off = after - before
    off[:, angle] -= 360.0 * np.rint(off[:, angle] / 360.0)
    assert np.abs(off).max() < 1e-6
    jump = np.abs(np.diff(after[:, angle], axis=0))
    assert jump.size == 0 or jump.max() <= 180.0 + 1e-6 or np.abs(np.diff(before[:, angle], axis=0)).max() > 180.0


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_real_files_read_and_written(shared_data, tmp_path, name):
    path = shared_data / "motion" / f"{name}.bvh"
    motion = check_positions(path)
    check_written(motion, tmp_path / "out.bvh")
    check_values(path, tmp_path / "out.bvh")
    assert read_skeleton(path).joint_names == motion.skeleton.joint_names
    assert motion.skeleton.meters_per_unit is None


@pytest.mark.parametrize("name", EDGE)
def test_edge_files(shared_data, tmp_path, name):
    path = shared_data / "edge_bvh" / f"{name}.bvh"
    motion = check_positions(path)
    check_written(motion, tmp_path / "out.bvh")
    check_values(path, tmp_path / "out.bvh")


def test_edge_file_with_too_few_frames(shared_data):
    (motion,) = read_motions(shared_data / "edge_bvh" / "frames_mismatch.bvh")
    assert len(motion) == 2
    assert "announces 5 frames and has 2" in motion.notes[0]


def test_real_file_cut_anywhere(shared_data, tmp_path):
    data = (shared_data / "motion" / "cmu_jumping_jacks.bvh").read_bytes()
    check_cuts(data, tmp_path, np.linspace(0, len(data) - 8, 40).astype(int))


# --- synthetic files --------------------------------------------------------------------------------------------------

ARM = """HIERARCHY
ROOT Hips
{
  OFFSET 1 2 -3
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Knee
  {
    OFFSET 0.5 10 0.25
    CHANNELS %s
    End Site
    {
      OFFSET 1 5 2
    }
  }
}
MOTION
Frames: %d
Frame Time: 0.01
%s
"""


def arm(channels, frames: int = 3, seed: int = 1) -> str:
    """A file with a root and a joint of given channels, at random values that change little from frame to frame."""
    names = list(channels)
    rng = np.random.default_rng(seed)
    table = rng.uniform(-80, 80, 6 + len(names)) + rng.uniform(-5, 5, (frames, 6 + len(names)))
    rows = "\n".join(" ".join(f"{v:.6f}" for v in row) for row in table)
    return ARM % (" ".join([str(len(names)), *names]), frames, rows)


def saved(tmp_path: Path, text: str | bytes, name: str = "in.bvh") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def every_channel_list() -> list[tuple[str, ...]]:
    """All orders of rotations alone; and mixtures with positions, before, after and between."""
    turns = [p for n in range(4) for p in itertools.permutations(ROTATIONS, n)]
    rng = np.random.default_rng(5)
    mixed = []
    for n in range(1, 7):
        for _ in range(8):
            mixed.append(tuple(rng.permutation(POSITIONS + ROTATIONS)[:n].tolist()))
    whole = [(*POSITIONS, *p) for p in itertools.permutations(ROTATIONS)]
    return [*turns, *mixed, *whole, (*ROTATIONS, *POSITIONS)]


def test_every_order_of_channels(tmp_path):
    for i, channels in enumerate(every_channel_list()):
        path = saved(tmp_path, arm(channels, seed=i), f"{i}.bvh")
        motion = check_positions(path)
        check_written(motion, tmp_path / f"out{i}.bvh")
        check_values(path, tmp_path / f"out{i}.bvh")


def test_kinds_and_names(tmp_path):
    def rows(*channels):
        skeleton = read_skeleton(saved(tmp_path, arm(channels)))
        return [(joint.name, joint.kind, joint.body) for joint in skeleton.joints[1:-1]], skeleton

    assert rows()[0] == [("Knee", Kind.FIXED, None)]
    assert rows("Yrotation")[0] == [("Knee", Kind.HINGE, None)]
    assert rows(*ROTATIONS)[0] == [("Knee", Kind.BALL, None)]
    assert rows(*POSITIONS, *ROTATIONS)[0] == [("Knee", Kind.FREE, None)]
    two, skeleton = rows("Zrotation", "Xrotation")
    assert two == [("Knee.Zrotation", Kind.HINGE, "Knee"), ("Knee.Xrotation", Kind.HINGE, "Knee")]
    assert skeleton.index("Knee") == skeleton.index("Knee.Xrotation") == 2
    assert skeleton.joints[-1].name == "Knee_end"
    assert skeleton.joints[-1].tip
    assert skeleton.tips == ("Knee_end",)
    np.testing.assert_allclose(skeleton.rest_pose().position("Knee"), [1.5, 12, -2.75])
    mixed, skeleton = rows("Zrotation", "Yposition", "Xrotation", "Yrotation")
    assert mixed == [("Knee.Yposition", Kind.SLIDE, "Knee"), ("Knee", Kind.BALL, "Knee")]
    assert skeleton.index("Knee") == 2


def hard(tmp_path: Path, text: str | bytes) -> Motion:
    """Read a variant of ARM that must equal it."""
    plain = check_positions(saved(tmp_path, PLAIN))
    motion = read_motions(saved(tmp_path, text, "hard.bvh"))[0]
    np.testing.assert_allclose(motion.q, plain.q, atol=1e-12)
    np.testing.assert_allclose(motion.positions(), plain.positions(), atol=1e-12)
    return motion


PLAIN = arm(["Zrotation", "Xrotation", "Yrotation"])
_VALUES = PLAIN.split("Frame Time: 0.01\n")[1]
SAME = {
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "UTF-16": PLAIN.encode("utf-16"),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR": PLAIN.replace("\n", "\r"),
    "tabs": PLAIN.replace("  ", "\t").replace(": ", ":\t").replace(" ", "\t").replace("End\t", "End "),
    "braces on one line": PLAIN.replace("\n{", " {").replace("\n  {", "{").replace("\n    {", "  {"),
    "hierarchy on one line": PLAIN.split("MOTION")[0].replace("\n", " ") + "\nMOTION" + PLAIN.split("MOTION")[1],
    "lower case": PLAIN.lower().replace("hips", "Hips").replace("knee", "Knee"),
    "upper case": PLAIN.upper().replace("HIPS", "Hips").replace("KNEE", "Knee"),
    "trailing blank lines": PLAIN + "\n\n  \n\t\n",
    "leading blank lines": "\n\n  " + PLAIN,
    "no last line end": PLAIN.rstrip(),
    "wrapped frames": PLAIN.replace(_VALUES, "\n".join(_VALUES.split())),
    "frames on one line": PLAIN.replace(_VALUES, " ".join(_VALUES.split())),
    "scientific notation": PLAIN.replace(_VALUES, " ".join(f"{float(v):.15E}" for v in _VALUES.split())),
    "bare points, plus signs": PLAIN.replace("0.5 10 0.25", "+.5 10. 2.5e-1").replace("0.01", ".01"),
    "loose colons": PLAIN.replace("Frames:", "Frames :").replace("Frame Time:", "Frame   Time :"),
    "no blank after colons": PLAIN.replace(": ", ":"),
    "channels before offset": PLAIN.replace(
        "    OFFSET 0.5 10 0.25\n    CHANNELS 3 Zrotation Xrotation Yrotation\n",
        "    CHANNELS 3 Zrotation Xrotation Yrotation\n    OFFSET 0.5 10 0.25\n",
    ),
    "no channels in the end site": PLAIN.replace("OFFSET 1 5 2", "OFFSET 1 5 2 CHANNELS 0"),
}


@pytest.mark.parametrize("kind", SAME)
def test_hard_files_that_say_the_same(tmp_path, kind):
    motion = hard(tmp_path, SAME[kind])
    assert motion.skeleton.joint_names == ("Hips", "Knee", "Knee_end")
    assert motion.fps == pytest.approx(100.0)


@pytest.mark.parametrize("name", ["Left Knee", "man:Knee", "Knee.L", "Knee_end", "Колено", "End", "MOTION", "膝 2"])
def test_names_are_kept(tmp_path, name):
    motion = hard(tmp_path, PLAIN.replace("JOINT Knee", f"JOINT {name}  "))
    assert motion.skeleton.joint_names == ("Hips", name, f"{name}_end")
    write_bvh(motion, tmp_path / "out.bvh")
    assert read_skeleton(tmp_path / "out.bvh").joint_names == motion.skeleton.joint_names


def test_named_end_site(tmp_path):
    assert hard(tmp_path, PLAIN.replace("End Site", "End Site Toe")).skeleton.tips == ("Toe",)


def test_latin_1_names(tmp_path):
    assert hard(tmp_path, PLAIN.replace("Knee", "Kniß").encode("latin-1")).skeleton.joint_names[1] == "Kniß"


def two_knees(channels: str) -> str:
    joint = f"JOINT Knee {{ OFFSET 0 1 0 CHANNELS {channels} End Site {{ OFFSET 0 1 0 }} }}"
    return f"HIERARCHY ROOT A {{ OFFSET 0 0 0 CHANNELS 0 {joint} {joint} }} MOTION Frames: 2 Frame Time: 1\n"


def test_duplicate_names(tmp_path):
    path = saved(tmp_path, two_knees("1 Xrotation") + "10 20\n30 40\n")
    motion = check_positions(path)
    assert motion.skeleton.joint_names == ("A", "Knee", "Knee_end", "Knee", "Knee_end2")
    with pytest.raises(UnknownNameError, match="several joints"):
        motion.skeleton.index("Knee")
    check_written(motion, tmp_path / "out.bvh")


def test_duplicate_names_of_joints_with_two_rows(tmp_path):
    path = saved(tmp_path, two_knees("2 Xrotation Zrotation") + "10 20 30 40\n30 40 50 60\n")
    motion = check_positions(path)
    with pytest.raises(UnknownNameError, match="several joints"):
        motion.skeleton.index("Knee")
    check_written(motion, tmp_path / "out.bvh")


def test_nested_joints_of_one_name(tmp_path):
    inner = "JOINT Knee { OFFSET 0 1 0 CHANNELS 2 Xrotation Zrotation %s }"
    text = f"HIERARCHY ROOT A {{ OFFSET 0 0 0 CHANNELS 0 {inner % (inner % '')} }} MOTION Frames: 1 Frame Time: 1\n"
    check_written(check_positions(saved(tmp_path, text + "1 2 3 4")), tmp_path / "out.bvh")


def test_many_end_sites_get_names_of_their_own(tmp_path):
    text = "HIERARCHY ROOT A { OFFSET 0 0 0 " + "End Site { OFFSET 0 1 0 } " * 300 + "}"
    assert len(set(read_skeleton(saved(tmp_path, text)).joint_names)) == 301


def test_several_roots(tmp_path):
    root = "ROOT %s { OFFSET 1 0 0 CHANNELS 3 Xposition Yposition Zrotation JOINT B { OFFSET 0 1 0 } }"
    text = f"HIERARCHY {root % 'A'} {root % 'C'} MOTION Frames: 1 Frame Time: 1\n1 2 30 4 5 60\n"
    motion = check_positions(saved(tmp_path, text))
    assert motion.skeleton.parents.count(-1) == 2
    check_written(motion, tmp_path / "out.bvh")


def test_no_channels_at_all(tmp_path):
    text = (
        "HIERARCHY ROOT A { OFFSET 1 2 3 CHANNELS 0 End Site { OFFSET 0 1 0 } } MOTION Frames: 4 Frame Time: 0.5\n\n\n"
    )
    motion = read_motions(saved(tmp_path, text))[0]
    assert len(motion) == 4
    np.testing.assert_allclose(motion.positions()[3], [[1, 2, 3], [1, 3, 3]])
    write_bvh(motion, tmp_path / "out.bvh")
    assert len(read_motions(tmp_path / "out.bvh")[0]) == 4


def test_no_frames(tmp_path):
    path = saved(tmp_path, ARM % ("3 Zrotation Xrotation Yrotation", 0, ""))
    assert len(read_skeleton(path)) == 3
    with pytest.raises(FormatError, match=r"no frames.*load_skeleton"):
        read_motions(path)


def test_no_motion(tmp_path):
    path = saved(tmp_path, PLAIN.split("MOTION")[0])
    assert len(read_skeleton(path)) == 3
    with pytest.raises(FormatError, match="no motion"):
        read_motions(path)


@pytest.mark.parametrize("far", [2.0**31, 2.0**49, -(2.0**31), 1e15])
def test_huge_offsets(tmp_path, far):
    path = saved(tmp_path, PLAIN.replace("0.5 10 0.25", f"0.5 {far!r} 0.25"))
    check_positions(path)
    root = saved(tmp_path, PLAIN.replace("OFFSET 1 2 -3", f"OFFSET {far!r} 2 -3"))
    np.testing.assert_array_equal(read_skeleton(root).rest_pose().position("Hips"), [far, 2, -3])
    with pytest.raises(FormatError, match=r"line 2: positions of joint 'Hips' lose precision"):
        read_motions(root)


def test_whole_turns_and_large_angles_of_a_hinge(tmp_path):
    text = two_knees("1 Xrotation") + "0 720\n-1e4 3600.5\n"
    motion = check_positions(saved(tmp_path, text))
    write_bvh(motion, tmp_path / "out.bvh")
    np.testing.assert_allclose(table_of(tmp_path / "out.bvh")[0], [[0, 720], [-1e4, 3600.5]], rtol=1e-11)


# --- broken files -----------------------------------------------------------------------------------------------------

N = len(_VALUES.split())
BROKEN = {
    "other format": ("<robot/>", "line 1: is not a BVH file"),
    "garbage": (bytes(range(1, 256)) * 9, "line 1: is not a BVH file"),
    "zeros": (b"\0" * 999, "line 1: is not a BVH file"),
    "only the first word": ("HIERARCHY\n", "no joint"),
    "no root": (PLAIN.replace("ROOT Hips", "JOINT Hips"), "line 2: .*ROOT or MOTION"),
    "no name": (PLAIN.replace("JOINT Knee", "JOINT"), "line 6: joint has no name"),
    "End without Site": (PLAIN.replace("End Site", "End"), "line 11: End without Site"),
    "unclosed": (PLAIN.replace("}\nMOTION", "MOTION"), "line 15: joint 'Hips', begun on line 2, is not closed"),
    "closed twice": (PLAIN.replace("}\nMOTION", "}\n}\nMOTION"), "line 16: .*outside of a joint"),
    "no opening brace": (PLAIN.replace("JOINT Knee\n  {", "JOINT Knee\n"), "line 8: joint 'Knee' has no opening brace"),
    "no offset": (PLAIN.replace("OFFSET 1 5 2", ""), "line 13: End Site has no OFFSET"),
    "two offsets": (PLAIN.replace("OFFSET 1 5 2", "OFFSET 1 5 2 OFFSET 1 5 2"), "line 12: .*two OFFSETs"),
    "short offset": (PLAIN.replace("OFFSET 1 5 2", "OFFSET 1 5"), "line 13: OFFSET .*not a number: .*got '}'"),
    "long offset": (PLAIN.replace("OFFSET 1 5 2", "OFFSET 1 5 2 9"), "line 12: unexpected word"),
    "offset in words": (
        PLAIN.replace("1 5 2", "1 five 2"),
        "line 12: OFFSET of End Site is not a number: expected a number, got 'five'",
    ),
    "underscores": (PLAIN.replace("1 5 2", "1_0 5 2"), "line 12: .*not a number"),
    "offset NaN": (PLAIN.replace("1 5 2", "1 nan 2"), "line 12: .*not finite"),
    "offset infinite": (PLAIN.replace("1 5 2", "1 5 -inf"), "line 12: .*not finite"),
    "offset overflows": (PLAIN.replace("1 5 2", "1 5 1e999"), "line 12: .*not finite"),
    "offset too large": (PLAIN.replace("1 5 2", "1 5 1e200"), "line 12: .*too large"),
    "end site with child": (PLAIN.replace("OFFSET 1 5 2", "OFFSET 1 5 2 JOINT A"), "line 12: .*cannot have children"),
    "end site with channel": (PLAIN.replace("OFFSET 1 5 2", "CHANNELS 1 Xrotation"), "line 12: .*cannot have channels"),
    "too few channel names": (PLAIN.replace("CHANNELS 3", "CHANNELS 4"), "line 9: CHANNELS .*3 names, but announces 4"),
    "too many channel names": (PLAIN.replace("CHANNELS 3", "CHANNELS 2"), "line 9: CHANNELS .*3 names.*announces 2"),
    "seven channels": (PLAIN.replace("CHANNELS 3", "CHANNELS 7"), "line 9: number of CHANNELS"),
    "negative channels": (PLAIN.replace("CHANNELS 3", "CHANNELS -3"), "line 9: number of CHANNELS"),
    "channels in words": (PLAIN.replace("CHANNELS 3", "CHANNELS three"), "line 9: number of CHANNELS"),
    "two channel lists": (PLAIN.replace("10 0.25", "10 0.25 CHANNELS 0"), "line 9: .*two lists of CHANNELS"),
    "repeated channel": (
        PLAIN.replace("3 Zrotation Xrotation", "3 Xrotation Xrotation"),
        "line 9: channel Xrotation.*rep",
    ),
    "unknown channel": (PLAIN.replace("3 Zrotation", "3 Wrotation"), "line 9: unknown channel.*'Wrotation'"),
    "scale channel": (PLAIN.replace("3 Zrotation", "3 Zscale"), "line 9: CHANNELS"),
    "no count of frames": (PLAIN.replace("Frames: 3\n", ""), "line 17: number of frames"),
    "half a frame": (PLAIN.replace("Frames: 3", "Frames: 3.5"), "line 17: number of frames"),
    "endless count": (PLAIN.replace("Frames: 3", "Frames: " + "9" * 6000), "line 17: number of frames"),
    "no frame time": (PLAIN.replace("Frame Time: 0.01\n", ""), "line 18: frame time is missing"),
    "frame time in words": (PLAIN.replace("0.01", "fast"), "line 18: Frame Time is not a number"),
    "frame time 0": (PLAIN.replace("0.01", "0"), "line 18: frame time cannot be used"),
    "frame time -0": (PLAIN.replace("0.01", "-0.0"), "line 18: frame time cannot be used"),
    "frame time negative": (PLAIN.replace("0.01", "-0.01"), "line 18: frame time cannot be used"),
    "frame time NaN": (PLAIN.replace("0.01", "nan"), "line 18: frame time cannot be used"),
    "frame time infinite": (PLAIN.replace("0.01", "inf"), "line 18: frame time cannot be used"),
    "frame time tiny": (PLAIN.replace("0.01", "1e-320"), "line 18: frame time cannot be used"),
    "half of the frames, and of one": (
        PLAIN.replace("Frames: 3", "Frames: 5").rstrip().rpartition(" ")[0],
        r"line 21: .*fewer.*26 \(2 frames and 8 numbers\).*45 \(5 frames of 9 ch",
    ),
    "no frame of three": (PLAIN.split("Frame Time: 0.01\n")[0] + "Frame Time: 0.01\n", "fewer numbers"),
    "one more number": (PLAIN + "7", r"line 22: .*more.*28 \(3 frames and 1 numbers\)"),
    "one number missing": (PLAIN.rstrip().rpartition(" ")[0], r"fewer.*26 \(2 frames and 8 numbers\)"),
    "garbage after frames": (
        PLAIN + "thanks\n",
        "line 22: unexpected word in the motion: expected a number, got 'thanks'",
    ),
    "zeros after frames": (PLAIN + "\0\0\0", "line 22: unexpected word in the motion"),
    "word in a frame": (PLAIN.replace(_VALUES.split()[12], "O.5"), "line 20: unexpected word.*'O.5'"),
    "decimal comma": (PLAIN.replace(_VALUES.split()[12], "0,5"), "line 20: unexpected word.*'0,5'"),
    "hexadecimal": (PLAIN.replace(_VALUES.split()[12], "0x1F"), "line 20: unexpected word.*'0x1F'"),
    "NaN in a frame": (
        PLAIN.replace(_VALUES.split()[12], "nan"),
        "line 20: value of channel 4 in frame 2 is not finite",
    ),
    "infinity in a frame": (PLAIN.replace(_VALUES.split()[26], "-INF"), "line 21: value of channel 9 in frame 3"),
    "overflow in a frame": (PLAIN.replace(_VALUES.split()[12], "1e999"), "line 20: value of channel 4 in frame 2"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files(tmp_path, kind):
    text, message = BROKEN[kind]
    path = saved(tmp_path, text)
    start = time.process_time()
    with pytest.raises(FormatError, match=message) as caught:
        read_motions(path)
    assert time.process_time() - start < HANG
    assert str(caught.value).startswith(f"{path}, line ")


@pytest.mark.parametrize("announced", [0, 1, 2, 4, 5, -1, 99_999_999_999_999])
def test_all_whole_frames_are_read_whatever_the_file_announces(tmp_path, announced):
    path = saved(tmp_path, PLAIN.replace("Frames: 3", f"Frames: {announced}"))
    (motion,) = read_motions(path)
    np.testing.assert_array_equal(motion.q, read_motions(saved(tmp_path, PLAIN, "plain.bvh"))[0].q)
    assert len(motion.notes) == 1
    assert f"announces {announced} frames and has 3" in motion.notes[0]
    assert ("may be cut off" in motion.notes[0]) == (announced > 3)
    with pytest.warns(UserWarning, match=f"announces {announced} frames and has 3"):
        load_skeleton(path)


def test_still_frames_without_end(tmp_path):
    text = "HIERARCHY ROOT A { OFFSET 0 0 0 } MOTION Frames: 999999999999 Frame Time: 1\n"
    with pytest.raises(FormatError, match="too many frames without channels"):
        read_motions(saved(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "HIERARCHY\nROOT A\n{\nOFFSET 0 0 0\n" + "JOINT A\n{\nOFFSET 0 1 0\nCHANNELS 1 Xrotation\n" * MORE,
        "HIERARCHY " + "ROOT A { OFFSET 0 0 0 } " * MORE,
        "HIERARCHY "
        + "ROOT A { OFFSET 0 0 0 CHANNELS 5 Xposition Yposition Zposition Xrotation Yrotation } " * (MORE // 5),
    ],
    ids=["deep", "wide", "rows"],
)
def test_too_many_joints(tmp_path, text):
    path = saved(tmp_path, text)
    start = time.process_time()
    with pytest.raises(FormatError, match=r"line \d+: too many joints"):
        read_skeleton(path)
    assert time.process_time() - start < HANG


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileError, match="empty"):
        read_skeleton(saved(tmp_path, ""))
    with pytest.raises(FileError, match="folder"):
        read_skeleton(tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        read_motions(tmp_path / "none.bvh")


def check_cuts(data: bytes, tmp_path: Path, places) -> None:
    """Cut before its last number, a file must fail or be said to be cut; before its frames it may be a hierarchy."""
    whole = data.index(b"MOTION")
    for place in places:
        path = saved(tmp_path, data[:place], "cut.bvh")
        start = time.process_time()
        with suppress(FormatError, FileError):
            (motion,) = read_motions(path)
            assert "may be cut off" in motion.notes[0]
            continue
        with pytest.raises((FormatError, FileError), match=re.escape(str(path))):
            read_motions(path)
        if not data[:place].rstrip().endswith(b"}") or place < whole - 1:
            with pytest.raises((FormatError, FileError)):
                read_skeleton(path)
        assert time.process_time() - start < HANG


def test_cut_anywhere(tmp_path):
    data = arm(["Zrotation", "Yrotation"], frames=4).encode()
    end = len(data.rstrip().rpartition(b" ")[0])
    places = [place for place in range(end + 1) if place not in hierarchy_ends(data)]
    assert len(places) > 400
    check_cuts(data, tmp_path, places)


def hierarchy_ends(data: bytes) -> range:
    """Places just after the whole hierarchy, where a skeleton is rightly read."""
    return range(data.index(b"MOTION") - 1, data.index(b"MOTION") + 1)


@given(st.binary(max_size=200))
def test_garbage_never_escapes(tmp_path, data):
    for text in (data, b"HIERARCHY\n" + data, PLAIN.encode()[: 40 + len(data)] + data, PLAIN.encode() + data):
        with suppress(FormatError, FileError):
            read_motions(saved(tmp_path, text, "garbage.bvh"))


@given(st.integers(0, len(PLAIN) - 1), st.sampled_from([*"{}\n 019.-eXzRn\0", "nan", "1e999", "JOINT", "End Site"]))
def test_changed_bytes_never_escape(tmp_path, at, other):
    try:
        motion = read_motions(saved(tmp_path, PLAIN[:at] + other + PLAIN[at + 1 :], "changed.bvh"))[0]
    except (FormatError, FileError):
        return
    assert np.isfinite(motion.positions()).all()


def test_what_a_bvh_file_looks_like():
    assert bvh.FORMAT.looks_like(PLAIN.encode())
    assert bvh.FORMAT.looks_like(b"\xef\xbb\xbf\r\n hierarchy")
    assert bvh.FORMAT.looks_like(PLAIN.encode("utf-16"))
    assert not bvh.FORMAT.looks_like(b"<robot>")


# --- Euler angles -----------------------------------------------------------------------------------------------------

ORDERS = list(itertools.permutations(range(3)))


@pytest.mark.parametrize("order", ORDERS)
def test_quaternions_of_angles(order):
    angles = np.random.default_rng(3).uniform(-4, 4, (50, 3))
    first, second, third = (turn("xyz"[axis], values) for axis, values in zip(order, np.degrees(angles.T), strict=True))
    expected = first @ second @ third
    np.testing.assert_allclose(quat_to_matrix(to_quat(order, angles)), expected[:, :3, :3], atol=1e-14)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("near", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 0.3])
def test_angles_of_quaternions_near_gimbal_lock(order, near):
    angles = np.random.default_rng(4).uniform(-3, 3, (40, 3))
    angles[:, 1] = np.where(np.arange(40) % 2, 1, -1) * (np.pi / 2 - near)
    quats = to_quat(order, angles)
    again = to_quat(order, from_quat(np.array([order]), quats[:, None])[:, 0])
    np.testing.assert_allclose(quat_to_matrix(again), quat_to_matrix(quats), atol=3e-12)


def test_angles_that_gimbal_lock_leaves_open_are_those_of_the_first_frame_that_has_them():
    angles = np.array([[0.2, np.pi / 2, 0.1]] * 4 + [[0.5, 0.3, -0.4]] * 2)
    quats = to_quat((2, 0, 1), angles)
    again = from_quat(np.array([(2, 0, 1)]), quats[:, None])[:, 0]
    np.testing.assert_allclose(quat_to_matrix(to_quat((2, 0, 1), again)), quat_to_matrix(quats), atol=1e-12)
    np.testing.assert_allclose(again[:, 0] - again[:, 2], 0.9, atol=1e-9)  # in the lock only the sum is known


@pytest.mark.parametrize("order", ORDERS)
def test_angles_are_continuous_over_many_turns(order):
    t = np.linspace(0, 1, 400)[:, None]
    angles = np.array([0.2, -0.3, 0.1]) + t * np.array([14.0, 0.9, -9.0])  # b stays off ±90 degrees, a and c turn on
    flips = np.where(np.arange(400) % 3, 1.0, -1.0)[:, None]  # either sign of a quaternion is the same rotation
    again = from_quat(np.array([order]), (flips * to_quat(order, angles))[:, None])[:, 0]
    np.testing.assert_allclose(again, angles, atol=1e-12)
    over = np.array([0.2, 0.0, 0.1]) + t * np.array([0.5, 7.0, -0.4])  # b runs through ±90 degrees
    again = from_quat(np.array([order]), to_quat(order, over)[:, None])[:, 0]
    np.testing.assert_allclose(again, over, atol=1e-12)


# --- written files ----------------------------------------------------------------------------------------------------


def test_gimbal_lock_in_a_file(tmp_path):
    rows = "".join(f"0 0 0 0 0 0 {10 + i} 90 {20 + 3 * i}\n" for i in range(5))
    motion = check_positions(saved(tmp_path, ARM % ("3 Zrotation Xrotation Yrotation", 5, rows)))
    check_written(motion, tmp_path / "out.bvh")


def test_nothing_is_replaced_unasked(tmp_path):
    motion = read_motions(saved(tmp_path, PLAIN))[0]
    with pytest.raises(FileError, match="exists"):
        write_bvh(motion, tmp_path / "in.bvh")
    write_bvh(motion, str(tmp_path / "in.bvh"), force=True)
    check_values(saved(tmp_path, PLAIN, "again.bvh"), tmp_path / "in.bvh")
    with pytest.raises(SynoviaError, match="not a path"):
        write_bvh(motion, 7)  # type: ignore[arg-type]


def test_names_that_no_file_can_hold(tmp_path):
    skeleton = Skeleton([Joint("a{b}\nc", None, Kind.FREE), Joint("", 0, Kind.BALL)])
    write_bvh(Motion(skeleton, skeleton.rest_q[None], 30.0), tmp_path / "out.bvh")
    assert read_skeleton(tmp_path / "out.bvh").joint_names == ("a_b__c", "joint")


def test_motion_without_frames(tmp_path):
    skeleton = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
    write_bvh(Motion(skeleton, np.zeros((0, skeleton.nq)), 30.0), tmp_path / "out.bvh")
    assert len(read_skeleton(tmp_path / "out.bvh")) == 3


def random_rest(rng: np.random.Generator) -> np.ndarray:
    quat = rng.normal(size=4)
    return rigid(rng.uniform(-2, 2, 3), quat_to_matrix(quat / np.linalg.norm(quat)))


def random_skeleton(rng: np.random.Generator) -> Skeleton:
    """A tree of every kind of joint, with rest rotations and slanted axes, rows not in depth-first order."""
    joints = []
    for i in range(int(rng.integers(1, 9))):
        kind = Kind(int(rng.integers(5)))
        rest = random_rest(rng) if rng.random() < 0.7 else rigid(rng.uniform(-2, 2, 3))
        parent = int(rng.integers(i)) if i and rng.random() < 0.9 else None
        axis = rng.normal(size=3) if kind in (Kind.HINGE, Kind.SLIDE) else np.zeros(3)
        joints.append(Joint(f"j{i}", parent, kind, rest, axis, tip=bool(rng.random() < 0.3)))
    return Skeleton(joints)


def random_motion(skeleton: Skeleton, rng: np.random.Generator, frames: int) -> Motion:
    q = rng.normal(size=(frames, skeleton.nq))
    for row, joint in enumerate(skeleton.joints):
        if joint.kind in (Kind.BALL, Kind.FREE):
            place = skeleton.q_slice(row)
            quat = q[:, place.stop - 4 : place.stop]
            quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    return Motion(skeleton, q, 24.0)


@settings(max_examples=8 if UNCOMPILED else TREES)
@given(st.integers(0, 2**32 - 1))
def test_skeletons_from_elsewhere_are_written_with_the_same_positions(tmp_path, seed):
    rng = np.random.default_rng(seed)
    motion = random_motion(random_skeleton(rng), rng, 4)
    path = tmp_path / "out.bvh"
    write_bvh(motion, path, force=True)
    again = check_positions(path)
    order = depth_first(motion.skeleton)
    rows = last_rows(again)
    assert len(rows) == len(order)
    scale = max(1.0, np.abs(motion.positions()).max())
    np.testing.assert_allclose(again.positions()[:, rows], motion.positions()[:, order], rtol=0, atol=1e-9 * scale)
    for row, old in zip(rows, order, strict=True):
        if not again.skeleton.joints[row].tip:
            assert again.skeleton.joints[row].name == motion.skeleton.joint_names[old]
            np.testing.assert_allclose(again.frames()[:, row, :9], motion.frames()[:, old, :9], rtol=0, atol=1e-9)
    path2 = tmp_path / "again.bvh"
    path2.unlink(missing_ok=True)
    check_written(again, path2)


def depth_first(skeleton: Skeleton) -> list[int]:
    order, stack = [], [row for row, parent in reversed(list(enumerate(skeleton.parents))) if parent < 0]
    while stack:
        order.append(stack.pop())
        stack += reversed(skeleton.children[order[-1]])
    return order


def random_text(rng: np.random.Generator) -> str:
    """A random BVH file: any tree, any channels."""
    count = int(rng.integers(1, 8))
    parents = [-1] + [int(rng.integers(i)) for i in range(1, count)]
    channels = [rng.permutation(POSITIONS + ROTATIONS)[: rng.integers(7)].tolist() for _ in range(count)]

    def block(i: int) -> str:
        x, y, z = rng.uniform(-9, 9, 3)
        inner = "".join(block(k) for k in range(count) if parents[k] == i)
        ends = "End Site { OFFSET 1 2 3 }\n" * int(rng.integers(2) if inner else rng.integers(3))
        listed = " ".join([str(len(channels[i])), *channels[i]])
        return (
            f"{'JOINT' if i else 'ROOT'} j{i}\n{{ OFFSET {x:.6f} {y:.6f} {z:.6f}\nCHANNELS {listed}\n{inner}{ends}}}\n"
        )

    width = sum(map(len, channels))
    rows = "\n".join(" ".join(f"{v:.5f}" for v in row) for row in rng.uniform(-85, 85, (3, width)))
    return f"HIERARCHY\n{block(0)}MOTION\nFrames: 3\nFrame Time: 0.02\n{rows}\n"


@settings(max_examples=8 if UNCOMPILED else TREES)
@given(st.integers(0, 2**32 - 1))
def test_random_files_are_read_and_written(tmp_path, seed):
    path = saved(tmp_path, random_text(np.random.default_rng(seed)), "in.bvh")
    motion = check_positions(path)
    (tmp_path / "out.bvh").unlink(missing_ok=True)
    check_written(motion, tmp_path / "out.bvh")


def test_a_free_root_put_above_is_written(tmp_path):
    """Rows with channels under joints without: each is written as it can be."""
    motion = read_motions(saved(tmp_path, arm(["Zrotation", "Xrotation"])))[0]
    rng = np.random.default_rng(6)
    joints = [Joint("world", None, Kind.FREE, random_rest(rng))]
    for joint, parent in zip(motion.skeleton.joints, motion.skeleton.parents, strict=True):
        rest = random_rest(rng) if joint.name == "Knee.Xrotation" else joint.rest
        joints.append(
            Joint(
                joint.name,
                parent + 1,
                joint.kind,
                rest,
                joint.axis,
                body=joint.body,
                tip=joint.tip,
                channels=joint.channels,
            )
        )
    moved = random_motion(Skeleton(joints), rng, 3)
    write_bvh(moved, tmp_path / "out.bvh")
    again = check_positions(tmp_path / "out.bvh")
    np.testing.assert_allclose(again.positions()[:, last_rows(again)], moved.positions(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("angle", [1e-9, 0.01, 0.4, 3.0])
def test_a_turned_row_of_a_joint_is_written(tmp_path, angle):
    """Rows are written as channels of one joint only where nothing turns between them."""
    motion = read_motions(saved(tmp_path, arm(["Zrotation", "Xrotation"])))[0]
    rest = np.eye(4)
    rest[:3, :3] = turn("y", [np.degrees(angle)])[0][:3, :3]
    joints = [
        replace(
            joint,
            parent=None if parent < 0 else motion.skeleton.joint_names[parent],
            rest=joint.rest @ rest if joint.name == "Knee.Xrotation" else joint.rest,
        )
        for joint, parent in zip(motion.skeleton.joints, motion.skeleton.parents, strict=True)
    ]
    moved = Motion(Skeleton(joints), motion.q, motion.fps)
    write_bvh(moved, tmp_path / "out.bvh")
    again = check_positions(tmp_path / "out.bvh")
    tips = [[row for row, joint in enumerate(one.skeleton.joints) if joint.tip] for one in (again, moved)]
    np.testing.assert_allclose(again.positions()[:, tips[0]], moved.positions()[:, tips[1]], rtol=0, atol=1e-9)


@pytest.mark.parametrize("change", ["a second child", "another body", "both"])
def test_rows_of_a_joint_that_no_longer_belong_together_are_written(tmp_path, change):
    """A joint of two rows, one of which got another child or another body's name: positions stay the same."""
    motion = read_motions(saved(tmp_path, arm(["Zrotation", "Xrotation"])))[0]
    rng = np.random.default_rng(2)
    joints = []
    for joint, parent in zip(motion.skeleton.joints, motion.skeleton.parents, strict=True):
        body = "other" if joint.name == "Knee.Zrotation" and change != "a second child" else joint.body
        joints.append(replace(joint, parent=None if parent < 0 else motion.skeleton.joint_names[parent], body=body))
    if change != "another body":
        joints.append(Joint("more", "Knee.Zrotation", rest=random_rest(rng)))
    skeleton = Skeleton(joints)
    moved = Motion(skeleton, motion.q, motion.fps)
    write_bvh(moved, tmp_path / "out.bvh")
    again = check_positions(tmp_path / "out.bvh")
    found = {joint.body or joint.name: row for row, joint in enumerate(again.skeleton.joints)}
    for name in ("Knee.Xrotation", "more"):
        if name in skeleton.joint_names:
            place = found.get(name, found.get("Knee"))
            assert place is not None
            np.testing.assert_allclose(
                again.positions()[:, place], moved.positions()[:, skeleton.index(name)], rtol=0, atol=1e-9
            )


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_mistakes_are_told_with_their_line_in_files_of_every_system(tmp_path, end):
    """Also where the first line is empty."""
    text = end.join(["", "HIERARCHY", "ROOT a", "{", "OFFSET 0 x 0", "}", ""])
    with pytest.raises(FormatError, match="line 5"):
        read_skeleton(saved(tmp_path, text))
