"""What is particular to one adapter; what holds for all of them is in tests/conformance/."""
