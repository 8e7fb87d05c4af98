"""Images of skeletons, poses and targets, and films of clips."""

from synovia.draw.camera import VIEWS, Camera
from synovia.draw.marks import marks_of
from synovia.draw.picture import picture
from synovia.draw.render import render
from synovia.draw.scene import Mark

__all__ = ["VIEWS", "Camera", "Mark", "marks_of", "picture", "render"]
