"""Synovia: inverse kinematics for anything with joints."""
