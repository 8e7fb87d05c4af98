"""The page of one browser: scene, panel, keys and messages, and what it saves."""
