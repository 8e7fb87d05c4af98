"""The time line along the bottom of a page: one component for the live, the retarget and the offline page."""
