"""The joint tree: the packed problem, forward kinematics, joint variables and their limits."""
