"""Prove that a chain cannot bring its tip to a target within the limits of its joints."""
