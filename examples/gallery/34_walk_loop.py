"""A walk that goes round
======================

Seventy frames of a walk are no whole number of strides, so the body jumps when they start again (left). `looped` cuts
them to whole strides, and shares what is missing at the seam among the frames beside it (right).
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
part = sy.load_motion(EXAMPLES / "walk.bvh")[10:80]
loop = part.looped(blend=10)


def steps(clip):
    """Return the largest way of a joint in each step, centimetres; the last one is that from the end to the start."""
    places = clip.in_place(heading=True).positions()
    return 100 * np.linalg.norm(np.roll(places, -1, axis=0) - places, axis=-1).max(axis=1)


print(f"step at the seam: {steps(part)[-1]:.1f} cm before, {steps(loop)[-1]:.1f} cm in the loop")
print(f"usual step: {np.median(steps(part)):.1f} cm")
again = sy.concatenate([part] * 3, align=True)
walk = sy.concatenate([loop] * 3, align=True)
print(f"three in a row: {sy.judge(walk).verdict}")
titles = ("again and again", "looped")
sy.render(walk, "loop.gif", next_to=again[: len(walk)], titles=titles, size=(560, 320), fps=12, force=True)
