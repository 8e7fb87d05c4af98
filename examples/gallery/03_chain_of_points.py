"""A chain through points
======================

You have no model file? A list of points makes a chain of ball joints. FABRIK, an algorithm made for chains, brings its
tip to the target.
"""

import numpy as np

import synovia as sy

height = np.linspace(0.0, 2.0, 11)
points = np.stack([0.05 * np.sin(4.0 * height), height, 0.0 * height], axis=1)
chain = sy.Skeleton.chain(points)
solution = sy.solve(chain, sy.PositionGoal("joint10", (0.9, 0.7, 0.4)), "fabrik")
print(solution)
sy.picture(solution, path="chain.png", size=(900, 640), force=True)
