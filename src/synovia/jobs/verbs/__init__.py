"""A file for each command that does something with files. Adding a file here adds its command."""
