"""How each library is called for an arm, at its best settings as far as they are known to us.

``make(task, once)`` returns the parts of a ``Library``. Restarts are the library's own; ``once`` asks for the answer
near the start: one attempt, or the nearest of a closed form's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Task(NamedTuple):
    """An arm of a URDF, and the tolerance that is asked for: metres and radians."""

    urdf: str
    base: str
    tip: str
    arm: object  # its kinematics, from NumPy alone
    tolerance: tuple[float, float]


def same(value):
    return value


class Library(NamedTuple):
    """How one is called; only ``solve`` is inside the clock."""

    prepare: Callable[..., object]  # a 4x4 target as the library takes it
    solve: Callable[..., object]  # that and a start to an answer whose joint values are read, or None
    begin: Callable[..., object] = same  # joint values as the library takes a start; an answer is one, too
    joints: Callable[..., object] = same  # the arm's joint values of an answer


def _ours(task, solver):
    """Return our problem, a row of joint values, and where the arm's stand in it."""
    import synovia as sy

    skeleton = sy.load_skeleton(task.urdf)
    ik = sy.IK(skeleton, sy.PoseGoal(task.tip), solver, tolerance=task.tolerance)
    places = np.concatenate([np.arange(skeleton.nq)[skeleton.q_slice(name)] for name in task.arm.names])
    at = slice(int(places[0]), int(places[-1]) + 1)
    if (np.arange(at.start, at.stop) != places).any():
        raise SystemExit("the arm's joints do not stand together")
    return ik, skeleton.rest_pose().q.copy(), at


def synovia(task, once, solver=None):
    ik, _, at = _ours(task, solver)
    tip, rest, names = task.tip, ik.problem.default_start, task.arm.names

    def begin(q):
        return rest.with_values(dict(zip(names, q.tolist(), strict=True)))

    def solve(target, start):
        return ik.solve({tip: target}, start).q

    def follow(target, start):
        pose = ik.solve({tip: target}, start).pose
        pose.q  # noqa: B018  # what the others return
        return pose

    if once:  # the pose is the next start
        return same, follow, begin, lambda pose: pose.q[at]
    return same, solve, begin, lambda q: q[at]


def segments(task, once):
    """Ours in closed form: the branch nearest to the start."""
    return synovia(task, once, "segments")


def roboticstoolbox(task, once):
    import roboticstoolbox as rtb

    ets = rtb.Robot.URDF(task.urdf).ets(start=task.base, end=task.tip)
    # its error is half the squared residual, so this is the loosest bound that guarantees both tolerances
    keep = {"tol": 0.5 * min(task.tolerance) ** 2, "joint_limits": True, "k": 0.1, "method": "chan"}
    keep |= {"slimit": 1, "ilimit": 100} if once else {"slimit": 100, "ilimit": 30}
    return same, lambda target, start: ets.ik_LM(target, q0=start, **keep).q


def optik(task, once):
    import optik

    robot = optik.Robot.from_urdf_file(task.urdf, task.base, task.tip)
    robot.set_parallelism(1)
    config = optik.SolverConfig(solution_mode="speed", max_time=0.1, tol_f=min(task.tolerance) ** 2)

    def solve(target, start):
        found = robot.ik(config, target, start)
        return None if found is None else found[0]

    return same, solve


def roboplan(task, once):
    import roboplan.core as core
    import roboplan.simple_ik as simple

    scene = core.Scene("arm", core.loadUrdfSceneDescription(task.urdf))
    scene.addGroupFromChain("arm", task.base, task.tip)
    names = task.arm.names
    settings = simple.SimpleIkOptions(
        group_name="arm", max_iters=100, max_time=0.1, max_restarts=0 if once else 50, step_size=1.0, damping=1e-3,
        max_linear_error_norm=task.tolerance[0], max_angular_error_norm=task.tolerance[1], check_collisions=False,
        fast_return=True,
    )  # fmt: skip
    ik = simple.SimpleIk(scene, settings)
    begin = core.JointConfiguration(names, np.zeros(len(names)))
    found = core.JointConfiguration(names, np.zeros(len(names)))

    def solve(target, start):
        begin.positions = start
        return np.array(found.positions) if ik.solveIk(target, begin, found) else None

    return lambda T: core.CartesianConfiguration(task.base, task.tip, np.asfortranarray(T)), solve


def pinocchio(task, once):
    """The loop of its documentation, damped by the error, clipped to the limits and restarted, as a user writes it."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(task.urdf)
    data = model.createData()
    frame = model.getFrameId(task.tip)
    names = task.arm.names
    at = np.array([model.joints[model.getJointId(name)].idx_q for name in names])
    low, high = model.lowerPositionLimit, model.upperPositionLimit
    most, most_turned = task.tolerance
    rng = np.random.default_rng(0)
    least, eye = np.maximum(low, -np.pi), np.eye(6)

    def descend(target, q):
        for _ in range(100):
            pin.forwardKinematics(model, data, q)
            off = pin.updateFramePlacement(model, data, frame).actInv(target)
            e = pin.log6(off).vector
            if np.linalg.norm(off.translation) < most and np.linalg.norm(e[3:]) < most_turned:
                return q, True
            J = pin.Jlog6(off.inverse()) @ pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)
            q = np.clip(q + J.T @ np.linalg.solve(J @ J.T + (0.05 * (e @ e) + 1e-9) * eye, e), low, high)
        return q, False

    def solve(target, start):
        q, reached = descend(target, start)
        for _ in range(0 if once else 20):
            if reached:
                break
            q, reached = descend(target, rng.uniform(least, np.minimum(high, np.pi)))
        return q

    def begin(values):
        q = pin.neutral(model)
        q[at] = values
        return q

    return pin.SE3, solve, begin, lambda q: q[at]


def ikpy(task, once):
    import warnings

    from ikpy.chain import Chain

    warnings.simplefilter("ignore")
    links = Chain.from_urdf_file(task.urdf, base_elements=[task.base]).links
    mask = np.array([getattr(link, "joint_type", "fixed") == "revolute" for link in links])
    chain = Chain.from_urdf_file(task.urdf, base_elements=[task.base], active_links_mask=mask.tolist())

    def solve(target, start):
        full = np.zeros(len(mask))
        full[mask] = start
        return chain.inverse_kinematics_frame(target, initial_position=full, orientation_mode="all", tol=1e-10)[mask]

    return same, solve


def _tool(task, other):
    """Return the inverse of the constant transform from another library's tip to ours."""
    q = 0.5 * (task.arm.low + task.arm.high) + 0.1
    return np.linalg.inv(np.linalg.inv(other(q)) @ task.arm.forward(q[None])[0])


def ssik(task, once):
    if len(task.arm.low) == 7:
        from ssik.prebuilt.franka import panda_ik as prebuilt
    else:
        from ssik.prebuilt.universal_robots import ur5e_ik as prebuilt

    def solve(target, start):
        found = (
            prebuilt.solve(target, max_solutions=1, q_seed=start) if once else prebuilt.solve(target, max_solutions=1)
        )
        return found[0].q if found else None

    return same, solve


def eaik(task, once):
    """Six joints alone: seven need one locked, which is a search around the library."""
    from eaik.IK_URDF import UrdfRobot

    robot = UrdfRobot(task.urdf)
    tool = _tool(task, robot.fwdKin)
    low, high = task.arm.low, task.arm.high  # which it does not know

    def solve(target, start):
        found = robot.IK(target @ tool)
        Q = [q for q, least in zip(found.Q, found.is_LS, strict=True) if not least]
        if not once:
            return next((q for q in Q if (low <= q).all() and (q <= high).all()), None)
        Q = [(np.asarray(q) - start + np.pi) % (2 * np.pi) - np.pi for q in Q]
        return start + min(Q, key=lambda d: np.abs(d).max()) if Q else None

    return same, solve


def ur_analytic_ik(task, once):
    from ur_analytic_ik import ur5e

    turned = np.diag([-1.0, -1.0, 1.0, 1.0])  # the URDF's base is turned half about z
    tool = _tool(task, lambda q: turned @ np.array(ur5e.forward_kinematics(*q)))

    def solve(target, start):
        found = ur5e.inverse_kinematics_closest(target, *start)
        return np.asarray(found).ravel()[:6] if len(found) else None

    return lambda T: np.ascontiguousarray(turned @ T @ tool), solve


def every_segments(task):
    ik, full, at = _ours(task, "segments")

    def solve(target, start):
        full[at] = start
        return ik.branches({task.tip: target}, full).q[:, at]

    return same, solve


def every_ssik(task):
    from ssik.prebuilt.universal_robots import ur5e_ik as prebuilt

    return same, lambda target, start: [found.q for found in prebuilt.solve(target, enumerate_windings=False)]


def every_eaik(task):
    """Answers that only come near are among them; those are left out."""
    from eaik.IK_URDF import UrdfRobot

    robot = UrdfRobot(task.urdf)
    tool = _tool(task, robot.fwdKin)

    def solve(target, start):
        found = robot.IK(target @ tool)
        return [q for q, least in zip(found.Q, found.is_LS, strict=True) if not least]

    return same, solve


def every_ur_analytic_ik(task):
    from ur_analytic_ik import ur5e

    turned = np.diag([-1.0, -1.0, 1.0, 1.0])
    tool = _tool(task, lambda q: turned @ np.array(ur5e.forward_kinematics(*q)))
    prepare = lambda T: np.ascontiguousarray(turned @ T @ tool)  # noqa: E731
    return prepare, lambda target, start: [np.ravel(q)[:6] for q in ur5e.inverse_kinematics(target)]


# every branch of a closed form, as joint values one after the other
BRANCHES = {
    "segments": every_segments,
    "ssik": every_ssik,
    "eaik": every_eaik,
    "ur_analytic_ik": every_ur_analytic_ik,
}

# what an installation needs beside the distribution: targets are NumPy's, so it counts for those who do not bring it
PINS = {
    "roboticstoolbox": ["setuptools<81"],  # it asks for pkg_resources, which newer ones lack
    "optik": ["numpy"],
}

# how it is called, distribution whose version is told, robots, and whether it iterates or knows a closed form
LIBRARIES = {
    "synovia": (synovia, "synovia", ("panda", "ur5e"), "iterates"),
    "segments": (segments, "synovia", ("panda", "ur5e", "wrist6"), "closed form"),
    "roboticstoolbox": (roboticstoolbox, "roboticstoolbox-python", ("panda", "ur5e"), "iterates"),
    "roboplan": (roboplan, "roboplan", ("panda", "ur5e"), "iterates"),
    "optik": (optik, "optik-py", ("panda", "ur5e"), "iterates"),
    "pinocchio": (pinocchio, "pin", ("panda", "ur5e"), "iterates"),
    "ikpy": (ikpy, "ikpy", ("panda", "ur5e"), "iterates"),
    "ssik": (ssik, "ssik", ("panda", "ur5e"), "closed form"),
    "eaik": (eaik, "EAIK", ("ur5e", "wrist6"), "closed form"),
    "ur_analytic_ik": (ur_analytic_ik, "ur-analytic-ik", ("ur5e",), "closed form"),
}
