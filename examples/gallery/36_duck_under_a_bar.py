"""Duck under a bar
================

A walk before and after two layers: the hips go down by 20 cm while feet that stand stay where they are, and the head
goes down and ahead, and looks at the floor. Everything before and after that is the walk, bit for bit.
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
held = {"frames": (44, 60), "blend": 20, "relative": True}
ahead = [sy.PositionGoal("head"), sy.AimGoal("head", (0.0, 1.0, 4.0), name="look")]
layers = [
    sy.Layer({"hips": (0.0, -0.2, -0.05)}, name="down", **held),
    sy.Layer({"head": (0.0, -0.12, 0.2)}, ahead, name="lean", **held),
]
edited = sy.edit(walk, layers)
print(edited.report())
for name, clip in (("before", walk), ("after", edited.motion)):
    feet = clip.positions()[:, [clip.skeleton.index(f"{side}_foot") for side in ("left", "right")]]
    speed = np.linalg.norm(np.diff(feet, axis=0), axis=2).min(axis=1).mean() * clip.fps
    head = clip.positions()[44:61, clip.skeleton.index("head"), 1].max()
    print(f"{name}: head at most {head:.2f} m high, the slower foot at {100 * speed:.0f} cm/s")
titles = ("before", "after")
sy.render(edited.motion, "duck.gif", next_to=walk, titles=titles, view="left", size=(560, 320), fps=12, force=True)
