"""The tests. README.md here says how one is written."""
