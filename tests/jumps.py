"""Clips whose path follows from physics: feet that stand do not move, and in flight the centre of mass falls."""

import numpy as np

import synovia as sy

FINE = 240.0  # frames per second in which a clip is made
GRAVITY = 9.81
STAND, STRAIGHT, CROUCH = 0.85, 0.858, 0.6  # metres from hip to ankle
TIPTOE = 0.6  # radians by which feet are stretched at take-off
LEGS = 0.86  # metres of thigh and shank together
PUSH = 8.0  # metres per second², from the crouch to the take-off


def smooth(share):
    """Return a smooth step from 0 to 1."""
    share = np.clip(share, 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)


def jumping(crouches=(0.1, 0.2, 0.28), tuck=0.15, arms=2.0, fps=30.0):
    """Return a clip of a person who jumps on the spot, and the frames of each flight as (first, end).

    Args:
        crouches: How far the hips sink before each jump, metres; the take-off has the speed of ``PUSH`` over this way.
        tuck: How far the feet are pulled up in flight, metres.
        arms: How far the arms rise in flight, radians.
        fps: Frames per second.
    """
    leg, foot, arm, air = [], [], [], []

    def add(length, stretched, raised, flying):
        for values, value in ((leg, length), (foot, stretched), (arm, raised), (air, flying)):
            values.extend(np.broadcast_to(value, np.shape(length)))

    add(np.full(96, STAND), 0.0, 0.0, False)
    for deep in crouches:
        low = STRAIGHT - deep
        time = np.arange(1, round(np.sqrt(2.0 * deep / PUSH) * FINE)) / FINE
        down = STAND + (low - STAND) * smooth(np.arange(1, 97) / 96.0)
        up, tiptoe = low + 0.5 * PUSH * time**2, TIPTOE * smooth(1.0 + (time - time[-1]) / 0.15)
        add(down, 0.0, 0.0, False)
        add(up, tiptoe, 0.0, False)
        q = _values(np.array([up[-2], up[-1]]), tiptoe[-2:], np.zeros(2))
        speed = float(np.diff(np.sum(_standing(q), axis=0)[:, 1])[0]) * FINE
        count = max(round(2.0 * speed / GRAVITY * FINE), 2)
        share = np.arange(1, count) / count
        bump = np.sin(np.pi * share) ** 2
        add(up[-1] - tuck * bump, TIPTOE, arms * bump, True)
        add(up[::-1], tiptoe[::-1], 0.0, False)
        add(down[::-1], 0.0, 0.0, False)
    add(np.full(96, STAND), 0.0, 0.0, False)
    q, flying = _values(np.array(leg), np.array(foot), np.array(arm)), np.array(air)
    hips, mass = _standing(q)
    ends = np.flatnonzero(np.diff(np.concatenate([[False], flying, [False]]).astype(int))).reshape(-1, 2)
    for first, end in ends:  # the frames in the air
        time = np.arange(end - first + 1) / FINE
        path = hips + mass
        path[end:, 2] += path[first - 1, 2] + (path[first - 1, 2] - path[first - 2, 2]) * len(time) - path[end, 2]
        fall = 0.5 * GRAVITY * np.outer(time * (time[-1] - time), [0.0, 1.0, 0.0])
        path[first - 1 : end] = path[first - 1] + np.outer(time / time[-1], path[end] - path[first - 1]) + fall
        hips = path - mass
    q[:, :3] += hips
    every = round(FINE / fps)
    return sy.Motion(body(), q[::every], fps), [(int(a) // every, -(-int(b) // every)) for a, b in ends]


def body():
    """Return the person who jumps."""
    return sy.bundled("humanoid").with_root("free")


def _values(leg, foot, arm):
    """Return joint values (T, nq) with lengths of the legs, stretched feet and raised arms, and the toes below.

    The hips are at 0. The centre of mass is always ahead of the toes by the same way, so that it can fall freely.
    """
    tilt = np.zeros(len(leg))
    for _ in range(8):
        q = _posed(leg, foot, arm, tilt)
        tilt += (np.sum(_standing(q), axis=0)[:, 2] + 0.13) / (0.8 * leg)
    return q


def _posed(leg, foot, arm, tilt):
    """Return joint values (T, nq) with lengths of the legs, stretched feet, raised arms and tilted legs."""
    person = body()
    q = np.tile(person.rest_q, (len(leg), 1))
    bend = np.arccos(np.clip(leg / LEGS, -1.0, 1.0))
    across = np.array([1.0, 0.0, 0.0])
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for joint, turns in (
            (f"{side}_upper_leg", -(bend + tilt)[:, None] * across),
            (f"{side}_foot", (foot - bend + tilt)[:, None] * across),
            (f"{side}_upper_arm", arm[:, None] * [0.0, 0.0, 0.5 * sign]),
        ):
            q[:, person.q_slice(joint)] = sy.Rotation.from_rotvec(turns).as_quat()
        q[:, person.q_slice(f"{side}_lower_leg")] = 2.0 * bend[:, None]
        q[:, person.q_slice(f"{side}_toes")] = foot[:, None]
    return q


def _standing(q):
    """Return the places of the root if the toes stand (T, 3), and the centre of mass relative to the root (T, 3)."""
    motion = sy.Motion(body(), q, FINE)
    toes = motion.positions()[:, motion.skeleton.index("left_toes")] * [0.0, 1.0, 1.0]
    return [0.0, 0.02, 0.0] - toes, np.array([pose.center_of_mass() for pose in motion]) - q[:, :3]


def hips(motion):
    """Return the middle of the hips in each frame, (T, 3)."""
    rows = [motion.skeleton.index(f"{side}_upper_leg") for side in ("left", "right")]
    return motion.positions()[:, rows].mean(1)


def striking(frames=300, fps=30.0):
    """Return a clip of a person whose left arm strikes and stops at once, twice, and whose right leg kicks much later.

    Returns:
        The clip, and the frames in which the arm stops.
    """
    person, time = body(), np.arange(frames)
    q = np.tile(person.rest_q, (frames, 1))
    share = np.clip(np.where(time % 30 < 5, time % 30 / 5.0, 1.0), 0.0, 1.0)
    share = np.where(time % 30 >= 15, 1.0 - smooth((time % 30 - 15) / 14.0), share)
    share = np.where(time < 60, share, 0.0)
    kick = np.where(time >= frames - 100, np.abs(1.2 * np.sin((time - frames + 100) / 4.0)), 0.0)
    q[:, person.q_slice("left_lower_arm")] = (1.8 - 1.7 * share)[:, None]
    q[:, person.q_slice("right_lower_leg")] = 0.8 * kick[:, None]
    for joint, turns in (
        ("left_upper_arm", np.outer(share, [0.0, -1.2, 0.0])),
        ("right_upper_leg", np.outer(kick, [-1.0, 0.0, 0.0])),
        ("right_upper_arm", np.outer(0.05 * np.sin(time / 10.0), [0.0, 0.0, 1.0])),
    ):
        q[:, person.q_slice(joint)] = sy.Rotation.from_rotvec(turns).as_quat()
    return sy.Motion(person, q, fps), [5, 35]
