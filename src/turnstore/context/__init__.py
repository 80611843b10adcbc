"""What the model sees of a conversation: how much of it, and what goes before it."""
