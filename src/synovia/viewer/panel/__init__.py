"""The tabs of controls next to the scene."""

from __future__ import annotations

from synovia.viewer.page.page import Page
from synovia.viewer.page.saving import Files
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.body import BodyTab
from synovia.viewer.panel.clip import ClipTab
from synovia.viewer.panel.goals import GoalsTab
from synovia.viewer.panel.keep import Keep
from synovia.viewer.panel.open import Open
from synovia.viewer.panel.solver import SolverTab
from synovia.viewer.panel.why import Why
from synovia.viewer.timeline.clip import ClipTimeLine


def tabs(page: Page) -> list[tuple[str, Tab]]:
    """Return the titles and the tabs of a page; the time line has no title, because it is below the scene."""
    actions, session = page.actions, page.session
    body, goals, animation, poses, hand = session.body, session.goals, session.animation, session.poses, session.hand
    files = Files(session.state, page.command, page.loops)
    return [
        ("", ClipTimeLine(page, actions, session)),
        ("Targets", GoalsTab(page, goals, body, hand)),
        ("Pose", BodyTab(page, actions, body, poses, hand)),
        ("Animation", ClipTab(page, actions, animation, session.layers, goals, files)),
        ("Solver", SolverTab(page, session.solving, body.given)),
        ("Why", Why(page, session.solving, session.layers)),
        ("Export", Keep(page, files, body)),
        ("Open", Open(page, poses, session.layers, animation)),
    ]
