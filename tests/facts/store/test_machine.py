"""Random operations from both clients against a plain model, on each engine.

`pytest -m "" tests/facts/store/test_machine.py` runs many more of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.facts.store.machine import make_machine
from tests.servers.setups import Setup

if TYPE_CHECKING:
    from tests.servers.running import Server

SYNC = Setup("sync", 3, decode=True)
ASYNC = Setup("async", 2, decode=False)


def _run(server: Server, prefix: str, engine: str, *, examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    with asyncio.Runner() as runner, server.client(SYNC) as sync:

        async def connect() -> object:
            client = server.async_client(ASYNC)
            await client.initialize()
            return client

        asynchronous = runner.run(connect())
        machine = make_machine(server, prefix, engine, sync, asynchronous, runner)
        run_state_machine_as_test(machine, settings=chosen)
        runner.run(asynchronous.aclose())  # type: ignore[attr-defined]  # as made above


@pytest.mark.keeps_keys  # the machine itself looks at what lives how long
def test_facts_do_what_the_model_does(server: Server, prefix: str, engine: str) -> None:
    _run(server, prefix, engine, examples=8, steps=30)


@pytest.mark.slow
@pytest.mark.keeps_keys
@pytest.mark.timeout(1800)
def test_facts_do_what_the_model_does_at_length(server: Server, prefix: str, engine: str) -> None:
    _run(server, prefix, engine, examples=200, steps=60)
