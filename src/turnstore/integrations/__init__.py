"""One module for each framework that can be given a memory; none is imported before it is used."""
