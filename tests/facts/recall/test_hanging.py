"""An embedder or a model that hangs holds up neither a turn nor the end of the process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.running import Server

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8.2", "valkey")]

MADE = """
import asyncio, threading
from datetime import timedelta
from turnstore import AsyncStore, Store
from turnstore.context import Context
from turnstore.facts import (
    AsyncExtraction, AsyncFacts, Exchanges, Extraction, ExtractionError, Facts, Recall, exchanges
)

going = ["once"]

def hangs(texts):
    if not (going and going.pop()):
        threading.Event().wait()
    return [[1.0, 2.0]]

url, prefix = {url!r}, {prefix!r}
options = dict(embed=hangs, dimensions=2, embedder="e", engine="plain", ttl=timedelta(hours=1))
"""

SYNC = """
store = Store.from_url(url, name="s", prefix=prefix)
facts = Facts(store, deadline=60, **options)
facts.add("ada", "Ada sails.")
context = Context(sources=[Recall(facts, deadline=0.1)])
chat = store.conversation("c", owner="ada")
with chat.turn("Hi", context=context) as turn:
    turn.reply("Ho")
try:
    Extraction(Facts(store, deadline=0.1, **options), hangs, deadline=0.1).extract(chat)
except TimeoutError:
    print(context.counts["recall"], len(chat.turns()))
"""

ASYNC = """
async def main():
    store = AsyncStore.from_url(url, name="s", prefix=prefix)
    facts = AsyncFacts(store, deadline=60, **options)
    await facts.add("ada", "Ada sails.")
    context = Context(sources=[Recall(facts, deadline=0.1)])
    chat = store.conversation("c", owner="ada")
    async with chat.turn("Hi", context=context) as turn:
        turn.reply("Ho")
    try:
        hasty = AsyncFacts(store, deadline=0.1, **options)
        await AsyncExtraction(hasty, hangs, deadline=0.1).extract(chat)
    except TimeoutError:
        print(context.counts["recall"], len(await chat.turns()))
    await store.close()

asyncio.run(main())
"""

BACKGROUND = """
exchanges._PATIENCE = 0.1
store = Store.from_url(url, name="s", prefix=prefix)
facts = Facts(store, **options)
going.clear()
context = Context(after=[Exchanges(facts, background=True)])
chat = store.conversation("c", owner="ada")
with chat.turn("Hi", context=context) as turn:
    turn.reply("Ho")
print(0, len(chat.turns()))
"""


@pytest.mark.parametrize(
    "code, printed",
    [(SYNC, "1 1"), (ASYNC, "1 1"), (BACKGROUND, "0 1")],
    ids=["sync", "async", "background"],
)
def test_the_process_ends(server: Server, prefix: str, code: str, printed: str) -> None:
    host, port = server.addresses[0]
    made = MADE.format(url=f"redis://{host}:{port}", prefix=prefix)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(made + code)],
        check=False,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert (done.returncode, done.stdout.strip()) == (0, printed), done.stderr
