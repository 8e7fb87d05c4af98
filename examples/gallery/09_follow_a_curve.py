"""Follow a curve
==============

A clip instead of a pose: `track` solves each frame from the one before, so that the arm moves smoothly. The strip below
shows the error of every frame.
"""

import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
u = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
curve = np.stack([0.45 + 0.1 * np.cos(u), 0.3 * np.sin(u), 0.45 + 0.15 * np.sin(2.0 * u)], axis=1)
clip = sy.IK(arm, sy.PositionGoal("tool")).track({"tool": curve}, fps=20)
print(clip)
sy.render(clip, "follow.gif", size=(480, 380), view="left", force=True)
