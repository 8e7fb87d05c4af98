"""Slow enough for the motors
==========================

A target that jumps would need infinite speed. `velocity=` limits the speed of every joint, and `smoothness=` removes
quick motion. Frames that come too late are listed.
"""

import matplotlib.pyplot as plt
import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
ik = sy.IK(arm, sy.PositionGoal("tool"))
targets = np.where(np.arange(90)[:, None] < 30, (0.45, -0.3, 0.4), (0.35, 0.4, 0.6))
raw = ik.track({"tool": targets}, fps=30)
slow = ik.track({"tool": targets}, fps=30, velocity=1.5)
print("frames that come too late:", len(slow.late))

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for name, clip in (("as fast as it likes", raw), ("velocity=1.5", slow)):
    speed = np.abs(np.diff(clip.q, axis=0)).max(axis=1) * 30
    axes.plot(np.arange(len(speed)) / 30, speed, label=name)
axes.set(xlabel="seconds", ylabel="fastest joint, rad/s", yscale="symlog")
axes.legend()
figure.savefig("velocity.png", dpi=120)
