"""Wave while walking
==================

A clip plus goals: the right hand waves, everything else stays close to the walk. The targets of feet, head, hips and
the other hand come from the clip itself.
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
kept = ["left_hand", "left_foot", "right_foot", "head", "hips"]
targets = sy.targets_from(walk, kept, rotations=True)
t = walk.times
head = walk.positions()[:, walk.skeleton.index("head")]
wave = head + np.stack([-0.32 + 0.1 * np.sin(9.0 * t), 0.0 * t, 0.22 + 0.0 * t], axis=1)
goals = [sy.PositionGoal("right_hand"), *(sy.PoseGoal(name) for name in kept)]
ik = sy.IK(walk.skeleton, goals, root="free", tolerance=(3e-3, 2e-2))  # 3 mm and one degree
clip = ik.track({**targets, "right_hand": wave}, walk.pose(0), fps=walk.fps)
print(clip)
sy.render(clip, "wave.gif", beside=walk, titles=("before", "waving"), size=(560, 320), fps=12, force=True)
