"""A walk on another body
======================

The walk of one body, carried over to a character with short legs. Joints are matched by
their roles, the path is scaled, and feet that stand stay in place.
"""

from pathlib import Path

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
carried = sy.retarget(walk, sy.load_skeleton(EXAMPLES / "character.glb"))
print(*carried.report().splitlines()[-4:], sep="\n")
titles = ("source", "character")
sy.render(carried.motion, "walk.gif", next_to=walk, titles=titles, size=(560, 320), fps=12, force=True)
