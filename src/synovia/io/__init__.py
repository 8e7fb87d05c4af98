"""Readers and writers: one file per format, found by extension and content."""

from synovia.io.load import load_motion, load_skeleton

__all__ = ["load_motion", "load_skeleton"]
