"""Exchanges that wait while a process ends, or is forked."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.running import Server

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-8.2", "valkey")]

# The embedder waits for `go`, and fails where `faults` says so.
MADE = """
import atexit, os, signal, sys, threading
from datetime import timedelta
from turnstore import Store
from turnstore.context import Context
from turnstore.facts import Exchanges, Facts, _exchanging

go, asked, faults = threading.Event(), threading.Event(), []

def embed(texts):
    asked.set()
    go.wait()
    if faults:
        raise OSError(*faults)
    return [[1.0, 2.0] for _ in texts]

store = Store.from_url({url!r}, name="s", prefix={prefix!r})
facts = Facts(store, embed=embed, dimensions=2, embedder="e", engine="plain",
              deadline=None, ttl=timedelta(hours=1))
said = Exchanges(facts, background=True)
context = Context(after=[said])
chat = store.conversation("c", owner="ada")

def say(times=1):
    for _ in range(times):
        with chat.turn("Hi", context=context) as turn:
            turn.reply("Ho")

def show(*more):
    print(*more, said.waiting, dict(said.counts), flush=True)

"""


def run(server: Server, prefix: str, code: str) -> tuple[list[str], str]:
    """Run a process to its end; give what it printed, and what it logged."""
    host, port = server.addresses[0]
    made = MADE.format(url=f"redis://{host}:{port}", prefix=prefix)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", made + code],
        check=False,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


CLOSED = """
said._queue.patience = 3600
_exchanging._WAITS = (3600, 3600, 3600)
atexit.register(show)
say(6)
asked.wait()
store.close()
go.set()
"""


def test_a_store_that_is_closed_holds_up_no_end(server: Server, prefix: str) -> None:
    printed, logged = run(server, prefix, CLOSED)
    assert printed == ["0 {'stored': 1, 'failed': 5}"]  # the first one was under way
    assert logged.count("ClosedError") == 5


# A failure takes less time than what is waited for at the end, and all of them much more.
FAILING = """
said._queue.patience = 1
_exchanging._WAITS = (0.1, 0.1, 0.1)
faults.append("down")
atexit.register(lambda: print(said.waiting > 0, said.counts["stored"]))
say(600)
go.set()
"""


def test_failures_hold_up_the_end_no_longer_than_what_hangs(server: Server, prefix: str) -> None:
    printed, logged = run(server, prefix, FAILING)
    assert printed == ["True 0"]
    assert "exchanges are not stored: none could be for 1 seconds" in logged


def test_a_turn_at_the_end_of_the_interpreter_is_stored_in_line(
    server: Server, prefix: str
) -> None:
    printed, _ = run(server, prefix, "go.set(); atexit.register(show); atexit.register(say)")
    assert printed == ["0 {'stored': 1}"]


def test_a_store_is_closed_at_the_end_when_all_is_stored(server: Server, prefix: str) -> None:
    code = "atexit.register(show); atexit.register(store.close); say(3); go.set()"
    printed, _ = run(server, prefix, code)
    assert printed == ["0 {'stored': 3}"]


# The interpreter does not end before this thread does.
OUTLIVING = """
def outlive():
    threading.main_thread().join()
    say()
    asked.wait()
    show()
    go.set()

atexit.register(show)
threading.Thread(target=outlive).start()
"""


def test_a_thread_that_outlives_the_main_one_has_a_background(server: Server, prefix: str) -> None:
    printed, _ = run(server, prefix, OUTLIVING)
    assert printed == ["1 {}", "0 {'stored': 1}"]


# While one exchange of the parent is worked on, and a thread holds the lock.
FORKED = """
def hold():
    with said._queue._changed:
        held.set()
        release.wait()

said._queue.patience = 3600
held, release = threading.Event(), threading.Event()
say()
asked.wait()
holder = threading.Thread(target=hold)
holder.start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(60)  # ends it if it hangs
    go.set()
    {child}
    show("child")
    sys.exit()
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
release.set()
holder.join()
go.set()
said.close()
show("parent", status)
"""


@pytest.mark.parametrize(
    "child, waiting_stored",
    [
        ("pass", "0 {}"),
        ("said.close()", "0 {}"),
        ("say(2); said.close()", "0 {'stored': 2}"),
        ("said.close(); say()", "0 {'stored': 1}"),
    ],
    ids=["idle", "closes", "works", "works in line"],
)
def test_a_child_has_its_own_exchanges(
    server: Server, prefix: str, child: str, waiting_stored: str
) -> None:
    printed, _ = run(server, prefix, FORKED.format(child=child))
    assert printed == [f"child {waiting_stored}", "parent 0 0 {'stored': 1}"]
