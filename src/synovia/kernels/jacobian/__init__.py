"""Methods that follow the Jacobian."""
