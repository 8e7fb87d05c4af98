"""Solves of a batch of poses of a UR5e and their gradients, beside theseus and pytorch_kinematics, from the same start.

    python benchmarks/gradients_peers.py [--targets 1000]

Needs an environment with torch, theseus-ai, torchlie, torchkin, pytorch_kinematics and Synovia. The clock is CPU time
of one thread. All answers are judged by the kinematics of Synovia, at 1e-6 m and 1e-6 rad. theseus minimises the
logarithm of the pose's error with its own Jacobians, and differentiates implicitly. pytorch_kinematics returns
answers without gradients; its time backward is that of its Jacobian and a batched solve, as its users write it.
"""

import argparse
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytorch_kinematics as pk
import theseus as th
import torch
from common import machine, save, table, verdicts

import synovia as sy
import synovia.torch as st

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from run import ROBOTS, write_ur5e

BAR = 20.0
NEAR = 1e-6  # metres, radians
ROUNDS = 3


class PoseError(th.CostFunction):
    """The logarithm of the motion from a target to the tool."""

    def __init__(self, q, target, model, tool, weight):
        """Register the variable and the target."""
        super().__init__(weight)
        self.q, self.target, self.model, self.tool = q, target, model, tool
        self.register_optim_vars(["q"])
        self.register_aux_vars(["target"])

    def _moved(self, jacobians=None):
        """Return the pose of the tool in the frame of the target."""
        T = self.model.forward_kinematics(self.q, jacobians)[self.tool]
        return self.target.inverse().compose(T)

    def error(self):
        """Return the error (B, 6)."""
        return self._moved().log_map()

    def jacobians(self):
        """Return the Jacobian by q, and the error."""
        by_q, by_pose = {}, []
        e = self._moved(by_q).log_map(jacobians=by_pose)
        return [by_pose[0] @ by_q[self.tool]], e

    def dim(self):
        """Return the number of residuals."""
        return 6

    def _copy_impl(self, new_name=None):
        """Return a copy."""
        return PoseError(self.q.copy(), self.target.copy(), self.model, self.tool, self.weight.copy())


def of_synovia(arm, tool, home):
    """Return a solve and its backward pass."""
    ik = sy.IK(arm, sy.PoseGoal(tool), tolerance=(NEAR, NEAR))
    return lambda T: st.solve(ik, T, home, threads=1), None


def of_theseus(path, tool, home):
    """Return a solve and its backward pass."""
    model = th.eb.UrdfRobotModel(str(path), dtype=torch.float64, link_names=[tool])
    q, target = th.Vector(6, name="q", dtype=torch.float64), th.SE3(name="target", dtype=torch.float64)
    objective = th.Objective(dtype=torch.float64)
    objective.add(PoseError(q, target, model, tool, th.ScaleCostWeight(torch.ones(1, 1, dtype=torch.float64))))
    settings = {"max_iterations": 40, "abs_err_tolerance": 1e-13, "rel_err_tolerance": 0.0}
    layer = th.TheseusLayer(th.LevenbergMarquardt(objective, th.CholeskyDenseSolver, **settings), vectorize=False)
    how = {"backward_mode": "implicit", "damping": 1e-3, "adaptive_damping": True}

    def solve(T):
        given = {"q": home.expand(len(T), 6).clone(), "target": T[:, :3].contiguous()}
        return layer.forward(given, optimizer_kwargs=how)[0]["q"]

    return solve, None


def of_pytorch_kinematics(path, tool, home):
    """Return a solve and its backward pass."""
    chain = pk.build_serial_chain_from_urdf(path.read_bytes(), tool).to(dtype=torch.float64)
    solver = pk.PseudoInverseIK(
        chain, NEAR, NEAR, retry_configs=home[None], max_iterations=100, early_stopping_no_improvement=None
    )

    def solve(T):
        return solver.solve(pk.Transform3d(matrix=T.detach(), dtype=torch.float64)).solutions[:, 0]

    def backward(q, gradient):
        return torch.linalg.solve(chain.jacobian(q).transpose(1, 2), gradient)

    return solve, backward


def main():
    """Measure in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    path = Path(tempfile.mkdtemp()) / "ur5e.urdf"
    write_ur5e(path)
    arm = sy.load_skeleton(path)
    tool, home = ROBOTS["ur5e"][1], torch.tensor(ROBOTS["ur5e"][2], dtype=torch.float64)
    rng = np.random.default_rng(0)
    goals = [sy.Pose(arm, home.numpy() + rng.normal(0.0, 0.3, 6)).transform(tool) for _ in range(options.targets)]
    T = torch.tensor(np.array(goals), requires_grad=True)
    libraries = {
        "synovia": of_synovia(arm, tool, home),
        "theseus": of_theseus(path, tool, home),
        "pytorch_kinematics": of_pytorch_kinematics(path, tool, home),
    }
    times = {name: [np.inf, np.inf] for name in libraries}
    solved, gradients = {}, {}
    for _ in range(ROUNDS):
        for name, (solve, backward) in libraries.items():
            begun = time.process_time()
            q = solve(T)
            between = time.process_time()
            ones = torch.ones_like(q)
            found = backward(q, ones) if backward else torch.autograd.grad(q, T, ones)[0]
            ended = time.process_time()
            times[name] = [min(times[name][0], between - begun), min(times[name][1], ended - between)]
            gradients[name] = found
            poses = st.forward(arm, q.detach(), [tool])[:, 0]
            off = (poses[:, :3, 3] - T[:, :3, 3]).norm(dim=1)
            turned = sy.Rotation.from_matrix((poses[:, :3, :3] @ T[:, :3, :3].transpose(1, 2)).detach().numpy())
            solved[name] = float(((off.detach().numpy() <= NEAR) & (turned.magnitude() <= NEAR)).mean())
    rows = [
        [name, version("theseus-ai" if name == "theseus" else name), f"{100 * solved[name]:.1f} %"]
        + [f"{1e6 * t / options.targets:.1f} µs" for t in both]
        + [f"{t / own:.0f}" for t, own in zip(both, times["synovia"], strict=True)]
        for name, both in times.items()
    ]
    least = [min(times[name][k] / times["synovia"][k] for name in times if name != "synovia") for k in (0, 1)]
    bars, held = verdicts(
        [
            (f"solves at least {BAR:g} times as fast: {least[0]:.0f}", least[0] >= BAR),
            (f"gradients at least {BAR:g} times as fast: {least[1]:.0f}", least[1] >= BAR),
        ]
    )
    head = ["library", "version", "solved", "forward", "backward", "forward, times ours", "backward, times ours"]
    result = {"targets": options.targets, "seconds": times, "solved": solved}
    save("gradients_peers", "Solves of poses and their gradients", result, f"{table(head, rows)}\n\n{bars}", machine())
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
