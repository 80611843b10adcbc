"""Settings of hypothesis for these tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: how long an example takes depends on what else the machine does.
settings.register_profile("turnstore", deadline=None)
settings.load_profile("turnstore")
