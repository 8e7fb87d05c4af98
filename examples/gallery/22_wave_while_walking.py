"""Wave while walking
==================

A layer on a clip: in its frames the right hand waves, and it fades in and out. Everything else is the walk, bit for
bit.
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
frames = slice(30, 71)  # 30 to 70
t = walk.times[frames]
head = walk.positions()[frames, walk.skeleton.index("head")]
wave = head + np.stack([-0.32 + 0.1 * np.sin(9.0 * t), 0.0 * t, 0.22 + 0.0 * t], axis=1)
edited = sy.edit(walk, sy.Layer({"right_hand": wave}, frames=(30, 70), blend=15))
print(edited.report())
sy.render(edited.motion, "wave.gif", next_to=walk, titles=("before", "waving"), size=(560, 320), fps=12, force=True)
