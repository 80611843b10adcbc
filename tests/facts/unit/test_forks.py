"""A process that is forked while an extraction works in the background."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

LONG = 60.0

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

# A parent that has looked at one conversation, `p`, or still does; `places` is what a child saw.
CODE = """
    import os, threading
    from types import SimpleNamespace
    from turnstore.facts._learning.runners import Runner

    begun, go, seen = threading.Event(), threading.Event(), threading.Event()
    places = []

    def work(place):
        places.append(place.keys)
        begun.set()
        if place.keys == "p":
            {parent}
        seen.set()

    runner = Runner(work, 10)
    assert runner.put(SimpleNamespace(keys="p"))
    assert begun.wait(60)
    if child := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        go.set()
        assert len(runner.take_all(60)) == {waiting} and runner.close(60) is None
        os._exit(status)
    seen.clear()
    places.clear()
    {child}
    print(places, flush=True)
    os._exit(0)
"""
WAITS = "return 3600.0  # to be looked at again"
WORKS = "go.wait(60)"


def forked(parent: str, child: str, waiting: int) -> str:
    """Run a parent and its child; give what the child prints."""
    code = textwrap.dedent(CODE).format(parent=parent, child=child, waiting=waiting)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=2 * LONG,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("parent, waiting", [(WAITS, 1), (WORKS, 0)], ids=["waits", "works"])
def test_a_child_looks_at_its_own_conversations(parent: str, waiting: int) -> None:
    child = 'assert runner.put(SimpleNamespace(keys="c")) and seen.wait(60)'
    assert forked(parent, child, waiting) == "['c']\n"


@pytest.mark.parametrize("parent, waiting", [(WAITS, 1), (WORKS, 0)], ids=["waits", "works"])
def test_a_child_does_not_wait_for_its_parent(parent: str, waiting: int) -> None:
    child = "assert runner.take_all(60) == [] and runner.close(60) is None and not seen.is_set()"
    assert forked(parent, child, waiting) == "[]\n"
