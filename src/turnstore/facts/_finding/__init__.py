"""How facts are found: candidates by vectors and by words, read and put in order."""
