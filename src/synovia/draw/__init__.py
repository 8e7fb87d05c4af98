"""Pictures of skeletons, poses and targets."""

from synovia.draw.camera import VIEWS, Camera
from synovia.draw.marks import marks_of
from synovia.draw.picture import picture
from synovia.draw.scene import Mark

__all__ = ["VIEWS", "Camera", "Mark", "marks_of", "picture"]
