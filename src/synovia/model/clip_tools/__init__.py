"""The mathematics of clip tools, on joint values over time; ``Motion`` provides the methods."""
