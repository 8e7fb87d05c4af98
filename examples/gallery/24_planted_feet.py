"""Feet that stay in place
=======================

In many clips standing feet slide. `foot_lock` finds the frames in which they stand and keeps them there. Here the walk
is made to slide first. The plot shows the speed and height of the feet afterwards.
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
q = walk.q.copy()
q[:, 0] += 0.02 * np.sin(7.0 * walk.times)  # the whole body drifts to and fro, and the feet with it
locked = sy.foot_lock(sy.Motion(walk.skeleton, q, walk.fps))
before, after = 1000 * np.max(locked.slide_before), 1000 * np.max(locked.slide)
print(f"slide while standing: {before:.1f} mm before, {after:.2f} mm after")
sy.plots.plot_feet(locked.motion, "feet.png", force=True)
