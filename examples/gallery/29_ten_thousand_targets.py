"""Ten thousand targets at once
============================

`solve_many` solves a batch on all cores, with the same answers for any number of threads. The dots are targets around
the arm: green ones can be reached.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
x, z = np.meshgrid(np.linspace(-1.1, 1.1, 120), np.linspace(-0.6, 1.3, 84))
targets = np.stack([x.ravel(), 0.0 * x.ravel(), z.ravel()], axis=1)
ik = sy.IK(arm, sy.PositionGoal("tool"), sy.LevenbergMarquardt(attempts=6))
begin = time.perf_counter()
many = ik.solve_many({"tool": targets})
print(f"{len(many)} problems in {time.perf_counter() - begin:.2f} s, {many.reached.mean():.0%} reached")
figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
axes.scatter(*targets[:, [0, 2]].T, c=np.where(many.reached, "#009e88", "#e4a0a0"), s=6)
axes.set(xlabel="x, m", ylabel="z, m", aspect="equal", title="y = 0")
figure.savefig("many.png", dpi=110)
