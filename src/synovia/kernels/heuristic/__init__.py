"""Heuristic solvers, which move positions, or one joint at a time: FABRIK, CCD and particles."""
