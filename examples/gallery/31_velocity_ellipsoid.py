"""The velocity ellipsoid
======================

Which directions can the tool move in easily? The singular values of the Jacobian are the axes of an ellipsoid. Near a
singular pose it becomes flat.
"""

import matplotlib.pyplot as plt
import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
for distance in (0.35, 0.5, 0.65, 0.8):
    pose = sy.solve(arm, sy.PositionGoal("tool", (distance, 0.0, 0.4))).pose
    J = pose.jacobian("tool")[[0, 2]]  # velocity along x and z
    U, s, _ = np.linalg.svd(J)
    u = np.linspace(0.0, 2.0 * np.pi, 100)
    ring = 0.12 * (U * s) @ np.stack([np.cos(u), np.sin(u)])
    axes.plot(distance + ring[0], 0.4 + ring[1], label=f"at {distance} m: {s[0]:.2f} and {s[1]:.2f} m/s")
axes.set(xlabel="x, m", ylabel="z, m", aspect="equal")
axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
figure.savefig("ellipsoid.png", dpi=120)
