"""A tentacle
==========

Forty balls in a row follow a target. FABRIK needs a few microseconds for each frame.
"""

import numpy as np

import synovia as sy

points = np.stack([np.zeros(41), np.linspace(0.0, 2.0, 41), np.zeros(41)], axis=1)
points[:, 0] = 0.1 * np.sin(3.0 * points[:, 1])
tentacle = sy.Skeleton.chain(points)
u = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
curve = np.stack([0.9 * np.cos(u), 0.8 + 0.5 * np.sin(3.0 * u), 0.9 * np.sin(u)], axis=1)
clip = sy.IK(tentacle, sy.PositionGoal("joint40"), "fabrik").track({"joint40": curve}, fps=16)
print(clip)
sy.render(clip, "tentacle.gif", size=(480, 400), force=True)
