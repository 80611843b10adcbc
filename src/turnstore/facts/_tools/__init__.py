"""What the memory tools are, and what they do when a model calls them."""
