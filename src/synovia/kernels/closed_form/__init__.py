"""Methods that compute their answer by formulas."""
