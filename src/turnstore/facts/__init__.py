"""Long-term facts of an owner, recalled across conversations."""
