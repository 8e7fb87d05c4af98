"""Fit shapes around the surface or the bones of a body, and measure their fit."""

from synovia.covers.measure import LinkFit, ShapeFit, shape_fit
from synovia.covers.shapes import fitted_text, with_shapes

__all__ = ["LinkFit", "ShapeFit", "fitted_text", "shape_fit", "with_shapes"]
