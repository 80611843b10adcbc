"""How facts are learnt: drawn from turns by a model, settled by rules, and undone."""
