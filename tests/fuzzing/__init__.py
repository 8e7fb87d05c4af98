"""Damaged files of every format: how they are made, read within limits, and reported."""
