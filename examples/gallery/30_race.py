"""A race of solvers
=================

How fast do the errors fall? `compare` gives all solvers the same problems on your model; `plot_convergence` draws the
errors by step.
"""

import synovia as sy

body = sy.bundled("humanoid")
result = sy.comparison.compare(
    sy.comparison.make_problems(body, count=12, frames=12), ["lm", "dls", "fabrik", "ccd"], budget=3.0
)
for row in result.rows:
    print(f"{row.solver:8} {row.reached:6.1%} reached, {row.steps:5.0f} steps, {row.median_us:8.1f} us")
sy.plots.plot_convergence(result, "race.png", force=True)
