"""What an arm reaches
===================

Blue cells are reached by a pose, and white ones are proved to be out of reach: beyond the arm, in the hole about its
shoulder that the limits of the elbow leave, and behind the limits of the base. A search that ends without an answer
leaves a cell yellow. `synovia inspect MODEL --reach JOINT` prints the same map.
"""

import numpy as np

import synovia as sy

joints = []
above, place = None, (0.0, 0.0, 0.0)
for name, axis, limit, end in (
    ("base", (0, 0, 1), (-2.4, 2.4), (0.0, 0.0, 0.3)),
    ("shoulder", (0, 1, 0), (-0.1, 1.8), (0.0, 0.0, 0.5)),
    ("elbow", (0, 1, 0), (0.0, 2.0), (0.0, 0.0, 0.4)),
):
    rest = np.eye(4)
    rest[:3, 3] = place
    joints.append(sy.Joint(name, above, sy.Kind.HINGE, rest, axis=axis, limit=sy.Interval(*limit)))
    above, place = name, end
rest = np.eye(4)
rest[:3, 3] = place
arm = sy.Skeleton([*joints, sy.Joint("tool", above, rest=rest)], name="arm", meters_per_unit=1.0, up="z")

sy.plots.plot_reach(arm, "tool", "reach.png")
