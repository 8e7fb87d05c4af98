"""Joints: the packed problem, forward kinematics, the variables of q and their limits."""
