"""The page of a body that follows a live source."""
