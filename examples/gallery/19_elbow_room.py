"""The tool rests, the elbow moves
===============================

A seven-joint arm has one joint more than a pose needs. A secondary objective uses this freedom: here it pulls the first
joint through its range, while the tool stays exactly where it is.
"""

import numpy as np

import synovia as sy

arm = sy.bundled("arm7")
down = sy.Rotation.from_euler("x", 180, degrees=True)
goal = sy.PoseGoal("tool", position=(0.45, 0.0, 0.4), rotation=down)
pose = sy.solve(arm, goal).pose
poses = []
for angle in np.concatenate([np.linspace(-1.0, 1.0, 24), np.linspace(1.0, -1.0, 24)]):
    wanted = sy.RestGoal({"joint1": angle}, joints=["joint1"])
    solution = sy.solve(arm, [goal, wanted], start=pose)
    pose = solution.pose
    poses.append(pose)
tool = np.array([one.position("tool") for one in poses])
print(f"the tool moves by {np.ptp(tool, axis=0).max():.1e} m, joint1 by {np.ptp([p['joint1'] for p in poses]):.2f} rad")
sy.render(sy.Motion(arm, [one.q for one in poses], 16.0), "elbow_room.gif", size=(480, 400), force=True)
