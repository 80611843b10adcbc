"""How facts are scored: their words, dates that a question names, one order for all engines."""
