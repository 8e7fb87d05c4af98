"""Signed distances between convex shapes, with the nearest points and the normal."""
