"""What a body is by its parts: how it stands, what its parts weigh and look like, and how far its joints turn."""

from synovia.bodies.limits import with_human_limits
from synovia.bodies.masses import with_body_masses
from synovia.bodies.standing import standing_goals

__all__ = ["standing_goals", "with_body_masses", "with_human_limits"]
