"""The commands: names, options and help. What they do is imported when they run, so that help is fast."""
