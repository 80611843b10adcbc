"""The servers that the tests run on, and what stands between them and a store."""
