"""The page of one browser: scene, panel, keys, messages and saved files."""
