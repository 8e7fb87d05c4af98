"""Where can the arm reach?
========================

Two views of the places that the tool takes in 40,000 random poses within the limits.
"""

import synovia as sy

sy.plots.plot_reach(sy.bundled("arm7"), "tool", "reach_map.png", force=True)
