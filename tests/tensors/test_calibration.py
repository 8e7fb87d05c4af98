"""Offsets of a UR5e from measured poses: exact without noise, and near the Cramer-Rao bound with noise."""

from __future__ import annotations

import numpy as np
import pytest

import synovia as sy
from shared_files import shared_data_folder
from synovia.tensors import Kinematics

NOISE = np.array([1e-4] * 3 + [1e-4] * 3)  # metres, radians


def poses(robot: sy.Skeleton, first: int, count: int) -> np.ndarray:
    """Return joint values of random poses."""
    return np.array([robot.random_pose(seed).q for seed in range(first, first + count)])


def linear(arm: Kinematics, q: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the transforms of the wrist (N, 4, 4), and the motion of each by the offsets (N, 6, 6 n)."""
    frames = arm.frames(q, offsets)
    T = arm.transforms(frames)
    rows = []
    for i in range(6):
        G = np.zeros(T.shape)
        if i < 3:
            G[:, 0, i, 3] = 1.0
        else:
            G[:, 0, :3, :3] = 0.5 * np.cross(np.eye(3)[i - 3][None, :, None], T[:, 0, :3, :3], axis=1)
        by_offsets = arm.gradients(q, frames, G, offsets, each=True)[1]
        assert by_offsets is not None
        rows.append(by_offsets.reshape(len(q), -1))
    return T[:, 0], np.stack(rows, 1)


def fitted(arm: Kinematics, q: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return the offsets of the smallest weighted squared error, by Gauss-Newton steps."""
    offsets = np.zeros((len(arm.skeleton), 6))
    for _ in range(5):
        T, J = linear(arm, q, offsets)
        turned = sy.Rotation.from_matrix(measured[:, :3, :3] @ T[:, :3, :3].transpose(0, 2, 1)).as_rotvec()
        error = np.concatenate([measured[:, :3, 3] - T[:, :3, 3], turned], axis=1) / NOISE
        A = (J / NOISE[:, None]).reshape(-1, offsets.size)
        offsets = offsets + np.linalg.lstsq(A, error.ravel(), rcond=1e-9)[0].reshape(offsets.shape)
    return offsets


@pytest.mark.shared_data
def test_calibration_is_exact_without_noise_and_efficient_with_noise() -> None:
    robot = sy.load_skeleton(shared_data_folder() / "robot" / "ur5e_nomesh.xml")
    arm = Kinematics(robot, ["wrist_3"])
    rng = np.random.default_rng(0)
    true = rng.normal(size=(len(robot), 6)) * ([1e-3] * 3 + [np.radians(0.1)] * 3)
    q, others = poses(robot, 0, 100), poses(robot, 1000, 20)
    measured, A = linear(arm, q, true)
    wanted, J = linear(arm, others, true)
    found = fitted(arm, q, measured)
    A = (A / NOISE[:, None]).reshape(-1, true.size)
    _, s, vt = np.linalg.svd(A, full_matrices=False)
    seen = vt[s > 1e-9 * s[0]]  # combinations of offsets that poses of the wrist determine
    assert np.abs(seen @ (found - true).ravel()).max() < 1e-5  # the other combinations act on them to second order
    calibrated = robot.with_offsets(found)
    for one, T in zip(others, wanted, strict=True):
        assert sy.Pose(calibrated, one).transform("wrist_3") == pytest.approx(T, abs=1e-9)

    J = J.reshape(-1, true.size)
    bound = np.square(J @ np.linalg.pinv(A, rcond=1e-9)).sum()
    lost = []
    for _ in range(40):
        noise = NOISE * rng.normal(size=(len(q), 6))
        noisy = measured.copy()
        noisy[:, :3, 3] += noise[:, :3]
        noisy[:, :3, :3] = sy.Rotation.from_rotvec(noise[:, 3:]).as_matrix() @ measured[:, :3, :3]
        lost.append(np.square(J @ (fitted(arm, q, noisy) - true).ravel()).sum())
    assert 0.8 * bound < np.mean(lost) < 1.2 * bound
