"""How much of what was said long ago is found again: recall of evidence, without any LLM."""
