"""One module a case; each has `measure(context) -> list of figures`."""
