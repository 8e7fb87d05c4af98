"""What a body is by its parts: how it stands, and what its parts weigh."""

from synovia.bodies.masses import with_body_masses
from synovia.bodies.standing import standing_goals

__all__ = ["standing_goals", "with_body_masses"]
