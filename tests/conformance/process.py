"""Says one thing through a driver, in a process of its own; prints the answer.

`python -m tests.conformance.process JSON`, with the fields of `Asked`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tests.conformance.drivers import driver_named
from tests.servers.facade import as_async
from turnstore import AsyncStore, Store

if TYPE_CHECKING:
    from tests.conformance.driver import Kind


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the other process needs to know."""

    driver: str
    kind: Kind
    redis_url: str
    cluster: bool
    prefix: str
    model_url: str
    conversation: str
    text: str

    def command(self) -> list[str]:
        """Give the command that runs it."""
        return [sys.executable, "-m", "tests.conformance.process", json.dumps(asdict(self))]

    async def run(self) -> str:
        """Say it, and give the answer."""
        driver = driver_named(self.driver)(self.kind, self.model_url)
        store = self._store()
        answer = await driver.say(driver.remember(store.conversation(self.conversation)), self.text)
        await driver.close()
        await store.close()
        return answer

    def _store(self) -> AsyncStore:
        kind = AsyncStore if self.kind == "async" else Store
        made = kind.from_url(self.redis_url, cluster=self.cluster, name="test", prefix=self.prefix)
        return as_async(made) if isinstance(made, Store) else made


if __name__ == "__main__":
    print(asyncio.run(Asked(**json.loads(sys.argv[1])).run()))  # noqa: T201 - what it is for
