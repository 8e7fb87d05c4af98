"""What a body looks like: the skin of a character or the shapes of a robot, from the file that its joints came from."""

from synovia.viewer.surface.base import Part, Surface
from synovia.viewer.surface.read import surface_of

__all__ = ["Part", "Surface", "surface_of"]
