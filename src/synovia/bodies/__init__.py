"""Properties of bodies by their parts: standing goals, masses, soles and joint limits."""

from synovia.bodies.limits import with_human_limits
from synovia.bodies.masses import with_body_masses
from synovia.bodies.standing import standing_goals

__all__ = ["standing_goals", "with_body_masses", "with_human_limits"]
