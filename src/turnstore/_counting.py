"""Count, whichever thread it happens in.

Counters are shared: by the turns of many threads, and with what goes on in the background. `+=`
reads and writes, and what another thread counts between the two is lost: where a name is counted
for the first time, as `Counter` asks a function of Python's for what is missing, and without a
GIL at any time.
"""

from __future__ import annotations

import os
import threading
from collections import Counter

__all__ = ["count", "counting"]

# Held while one number is raised. Whoever holds it may be interrupted by a signal or a finaliser
# that counts as well. A fork waits for it, so that no child finds it held by nobody.
counting = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=counting.acquire, after_in_parent=counting.release, after_in_child=counting.release
    )


def count(counts: Counter[str], name: str, more: int = 1) -> None:
    """Count something."""
    with counting:
        counts[name] += more
