"""Distances between shapes, pairs of links, and the fit of shapes."""

from synovia.covers import LinkFit as LinkFit
from synovia.covers import ShapeFit as ShapeFit
from synovia.covers import shape_fit as shape_fit
from synovia.model.shapes.distances import Contact as Contact
from synovia.model.shapes.distances import distance as distance
from synovia.model.shapes.ground import Ground as Ground
from synovia.model.shapes.pairs import SelfPairs as SelfPairs
from synovia.model.shapes.pairs import self_pairs as self_pairs
from synovia.model.shapes.solids import Solid as Solid
