"""From keypoints to joint rotations
=================================

A camera gives you points, with noise and gaps. `fit_positions` finds the joint rotations of a body that explain them.
Here the points come from a known walk, so the error can be measured.
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
walk = sy.Motion(walk.skeleton, walk.q[:30], walk.fps)
body = walk.skeleton
joints = [name for name in body.joint_names if "tip" not in name]
truth = walk.positions()[:, [body.index(name) for name in joints]]
rng = np.random.default_rng(0)
seen = truth + rng.normal(0.0, 0.01, truth.shape)  # 1 cm of noise on each axis
seen[rng.random(truth.shape[:2]) < 0.2] = np.nan  # a fifth of the points is hidden

fitted = sy.fit_positions(seen, body, joints, fps=walk.fps)
found = fitted.positions()[:, [body.index(name) for name in joints]]
print(f"noise {np.nanmean(np.linalg.norm(seen - truth, axis=2)):.4f} m a point")
print(f"error {np.mean(np.linalg.norm(found - truth, axis=2)):.4f} m a point, hidden ones included")
sy.render(fitted, "keypoints.gif", next_to=walk, titles=("truth", "found"), size=(560, 320), fps=12, force=True)
