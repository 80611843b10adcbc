"""What is measured: the floors and turnstore, behind one face that peers share.

A *floor* is the least that any store of messages could do on Redis:
- `raw`: RPUSH of bytes that lie ready, LRANGE that leaves them bytes;
- `ideal`: orjson.dumps and one EVALSHA (RPUSH, LTRIM, PEXPIRE), LRANGE and orjson.loads of each.
- `with a head`: an append that also knows a turn that it has stored before, counts turns and
  messages, and notes the time: no less can be safe to repeat. The other two store it twice.
"""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import orjson
import redis
import redis.asyncio

if TYPE_CHECKING:
    from harness import Kind
    from mix import Turn

NO_LIMIT = 10**9
TTL_MS = 86_400_000
_CHUNK = 500
SCRIPT = """
redis.call('RPUSH', KEYS[1], unpack(ARGV, 3))
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[1]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""


HEAD_SCRIPT = """
local number, messages, ids =
  string.match(redis.call('LINDEX', KEYS[1], 0), '^(%d+) (%d+) (.+)$')
if string.find(ids, ARGV[1], 1, true) then return 0 end
number, messages = number + 1, messages + ARGV[3]
local time = redis.call('TIME')
local header = number .. ' ' .. messages .. ' '
redis.call('RPUSH', KEYS[1], header .. time[1] .. time[2] .. ' ' .. ARGV[1] .. ' ' .. ARGV[4])
redis.call('LSET', KEYS[1], 0, header .. string.sub(ids, 13) .. ' ' .. ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return number
"""


class Subject:
    """A store of messages. Methods of an async subject return awaitables."""

    name = ""
    kind: Kind = "sync"
    appends = True  # takes part in the cases that append or read alone

    def __init__(self, url: str, limit: int = NO_LIMIT) -> None:
        self.url = url
        self.limit = limit

    def native(self, turn: Turn) -> Any:
        """The turn as this store's users hold it; made before the clock runs."""
        return turn

    def fill(self, key: str, turns: list[Any]) -> Any:
        """Store many turns by the fastest way there is; not timed."""
        raise NotImplementedError

    def renew(self, master: str, key: str, turns: list[Any]) -> Any:
        """Make `key` anew, with what `master` holds: the same turns. Not timed."""
        del master
        return self.fill(key, turns)

    def append(self, key: str, turn: Any) -> Any:
        """Store one turn."""
        raise NotImplementedError

    def read(self, key: str, count: int) -> Any:
        """The newest `count` messages, oldest first, or all if the store cannot say so."""
        raise NotImplementedError

    def texts(self, key: str) -> Any:
        """The contents of all messages, oldest first; not timed."""
        raise NotImplementedError

    def turn(self, key: str, count: int, turn: Any) -> Any:
        """Read the newest `count` and append one turn."""
        if self.kind == "async":
            return self._turn(key, count, turn)
        self.read(key, count)
        return self.append(key, turn)

    async def _turn(self, key: str, count: int, turn: Any) -> Any:
        await self.read(key, count)
        return await self.append(key, turn)

    def close(self) -> Any:
        """Close what was opened."""
        return None


class _Floor(Subject):
    def __init__(self, url: str, limit: int = NO_LIMIT) -> None:
        super().__init__(url, limit)
        self.filler = redis.Redis.from_url(url)
        self.client: Any = (
            redis.Redis.from_url(url) if self.kind == "sync" else redis.asyncio.Redis.from_url(url)
        )

    def _put(self, key: str, items: list[bytes]) -> None:
        for start in range(0, len(items), _CHUNK):
            self.filler.rpush(key, *items[start : start + _CHUNK])
        self.filler.pexpire(key, TTL_MS)

    def _all(self, key: str) -> list[str]:
        items: Any = self.filler.lrange(key, 0, -1)
        return [orjson.loads(item)["content"] for item in items]

    def fill(self, key: str, turns: list[Any]) -> Any:
        self._put(key, [m if isinstance(m, bytes) else orjson.dumps(m) for t in turns for m in t])
        return _done() if self.kind == "async" else None

    def renew(self, master: str, key: str, turns: list[Any]) -> Any:
        del turns
        self.filler.copy(master, key, replace=True)
        return _done() if self.kind == "async" else None

    def texts(self, key: str) -> Any:
        found = self._all(key)
        return _done(found) if self.kind == "async" else found

    def close(self) -> Any:
        self.filler.close()
        return self.client.aclose() if self.kind == "async" else self.client.close()


async def _done(value: Any = None) -> Any:
    return value


class Raw(_Floor):
    """RPUSH of ready bytes, LRANGE as bytes."""

    name = "floor raw"

    def native(self, turn: Turn) -> Any:
        return [orjson.dumps(message) for message in turn]

    def append(self, key: str, turn: Any) -> Any:
        return self.client.rpush(key, *turn)

    def read(self, key: str, count: int) -> Any:
        return self.client.lrange(key, -count, -1)


class RawAsync(Raw):
    """The same on redis.asyncio."""

    kind = "async"


class Ideal(_Floor):
    """orjson and one EVALSHA; LRANGE and orjson of each."""

    name = "floor ideal"
    script = SCRIPT

    def __init__(self, url: str, limit: int = NO_LIMIT) -> None:
        super().__init__(url, limit)
        self.sha: Any = self.filler.script_load(self.script)

    def append(self, key: str, turn: Any) -> Any:
        dumps = orjson.dumps
        return self.client.evalsha(self.sha, 1, key, self.limit, TTL_MS, *[dumps(m) for m in turn])

    def read(self, key: str, count: int) -> Any:
        loads = orjson.loads
        return [loads(item) for item in self.client.lrange(key, -count, -1)]


class IdealAsync(Ideal):
    """The same on redis.asyncio."""

    kind = "async"

    async def read(self, key: str, count: int) -> Any:
        loads = orjson.loads
        return [loads(item) for item in await self.client.lrange(key, -count, -1)]


class WithHead(Ideal):
    """The least that knows a turn by its id, and how much is stored: a head before the turns."""

    name = "floor with a head"
    script = HEAD_SCRIPT

    def append(self, key: str, turn: Any) -> Any:
        turn_id = secrets.token_urlsafe(8)
        return self.client.evalsha(self.sha, 1, key, turn_id, TTL_MS, len(turn), orjson.dumps(turn))

    def fill(self, key: str, turns: list[Any]) -> Any:
        self.filler.rpush(key, b"0 0 " + b"-" * 16 * 12)
        self._put(key, [orjson.dumps(turn) for turn in turns])
        return _done() if self.kind == "async" else None


class WithHeadAsync(WithHead):
    """The same on redis.asyncio."""

    kind = "async"


class _Ours(Subject):
    name = "turnstore"

    def __init__(self, url: str, limit: int = NO_LIMIT) -> None:
        import turnstore  # noqa: PLC0415 (a peer's environment may lack what it needs)

        super().__init__(url, limit)
        self.windows = {count: turnstore.Window(messages=count) for count in (50, 100)}
        self.all = turnstore.Window()
        self.filler = turnstore.Store.from_url(url, name="bench", max_messages=limit)
        self.store: Any = (
            self.filler
            if self.kind == "sync"
            else turnstore.AsyncStore.from_url(url, name="bench", max_messages=limit)
        )
        self.handles: dict[str, Any] = {}
        self.redis = redis.Redis.from_url(url)

    def handle(self, key: str) -> Any:
        """The conversation, made once."""
        found = self.handles.get(key)
        if found is None:
            found = self.handles[key] = self.store.conversation(key)
        return found

    def fill(self, key: str, turns: list[Any]) -> Any:
        conversation = self.filler.conversation(key)
        for turn in turns:
            conversation.append(turn)
        return _done() if self.kind == "async" else None

    def renew(self, master: str, key: str, turns: list[Any]) -> Any:
        del turns
        name = self.filler.conversation
        self.redis.copy(name(master).key, name(key).key, replace=True)
        return _done() if self.kind == "async" else None

    def append(self, key: str, turn: Any) -> Any:
        return self.handle(key).append(turn)

    def read(self, key: str, count: int) -> Any:
        return self.handle(key).read(self.windows[count])

    def texts(self, key: str) -> Any:
        found = [message["content"] for message in self.filler.conversation(key).read(self.all)]
        return _done(found) if self.kind == "async" else found


class Ours(_Ours):
    """turnstore.Store."""

    def turn(self, key: str, count: int, turn: Any) -> Any:
        with self.handle(key).turn(turn[:1], window=self.windows[count]) as pending:
            pending.reply(turn[1:])

    def close(self) -> Any:
        self.redis.close()
        self.store.close()


class OursAsync(_Ours):
    """turnstore.AsyncStore."""

    kind = "async"

    async def turn(self, key: str, count: int, turn: Any) -> Any:
        async with self.handle(key).turn(turn[:1], window=self.windows[count]) as pending:
            pending.reply(turn[1:])

    async def close(self) -> Any:
        self.redis.close()
        self.filler.close()
        await self.store.close()


class OursByHand(Ours):
    """turnstore.Store without the context manager: a read, then an append."""

    name = "turnstore read, append"
    appends = False  # the turn is all that is different

    def turn(self, key: str, count: int, turn: Any) -> Any:
        self.read(key, count)
        self.append(key, turn)


FLOORS: dict[Kind, list[type[Subject]]] = {"sync": [Raw, Ideal], "async": [RawAsync, IdealAsync]}
WITH_HEAD: dict[Kind, type[Subject]] = {"sync": WithHead, "async": WithHeadAsync}
OURS: dict[Kind, type[Subject]] = {"sync": Ours, "async": OursAsync}


def ours_is_there() -> bool:
    """Whether turnstore imports in this environment."""
    try:
        import turnstore  # noqa: PLC0415
    except ImportError:
        return False
    return hasattr(turnstore, "Store")
