"""How facts are stored, changed, moved and erased: flows, and what they send."""
