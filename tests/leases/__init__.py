"""Turns that wait for one another: the lease around a turn, and the queue for it."""
