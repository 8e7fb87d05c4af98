"""Proposals: learned starts that fit a target; see ``propose``."""
