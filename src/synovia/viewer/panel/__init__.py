"""The tabs of controls beside the scene."""

from synovia.viewer.page.page import Tab
from synovia.viewer.panel.body import Body
from synovia.viewer.panel.clip import Clip
from synovia.viewer.panel.goals import Goals
from synovia.viewer.panel.keep import Keep
from synovia.viewer.panel.open import Open
from synovia.viewer.panel.solver import SolverTab
from synovia.viewer.panel.why import Why

TABS: list[tuple[str, type[Tab]]] = [
    ("Targets", Goals),
    ("Pose", Body),
    ("Animation", Clip),
    ("Solver", SolverTab),
    ("Why", Why),
    ("Export", Keep),
    ("Open", Open),
]
