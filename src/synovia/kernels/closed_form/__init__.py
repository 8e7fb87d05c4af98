"""Closed-form methods, which compute their answer by formulas."""
