"""Goals as residuals with derivatives, and bounds that prove them out of reach."""
