"""Through a singular pose
=======================

A stretched arm is singular: it cannot move its tool outwards at any speed. So the joints must turn fast just before and
after. The plot shows the largest joint step of two methods, while the target moves out to the edge of the reach and
back.
"""

import matplotlib.pyplot as plt
import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
u = np.linspace(0.0, np.pi, 160)
path = np.stack([0.45 + 0.5 * np.sin(u), 0.1 * np.cos(u), 0.35 + 0.0 * u], axis=1)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for solver in (sy.PseudoInverse(attempts=1), sy.LevenbergMarquardt(attempts=1)):
    clip = sy.IK(arm, sy.PositionGoal("tool"), solver).track({"tool": path}, fps=60)
    steps = np.abs(np.diff(clip.q, axis=0)).max(axis=1)
    axes.plot(steps, label=f"{solver.name}, largest step {steps.max():.3f} rad")
axes.set(xlabel="frame", ylabel="largest joint step, rad", yscale="log")
axes.legend()
figure.savefig("singular.png", dpi=120)
