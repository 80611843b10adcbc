"""One module for each SDK whose client can be given a memory, imported only when it is used."""
