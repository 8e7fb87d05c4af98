"""Joint values and their limits
=============================

How near do the joints come to their limits during a motion? The dashed lines are the limits.
"""

import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
u = np.linspace(0.0, 2.0 * np.pi, 120)
curve = np.stack([0.35 + 0.2 * np.cos(u), 0.4 * np.sin(u), 0.3 + 0.0 * u], axis=1)
down = sy.Rotation.from_euler("x", np.full((120, 1), 180.0), degrees=True)
clip = sy.IK(arm, sy.PoseGoal("tool")).track({"tool": (curve, down)}, fps=30)
print(clip)
sy.plots.plot_joints(clip.motion, "joints.png", force=True)
