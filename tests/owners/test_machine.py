"""Random operations for owners, from both clients, against a plain model, on real servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.owners.machine import make_machine
from tests.servers.setups import Setup

if TYPE_CHECKING:
    from tests.servers.running import Server

SYNC = Setup("sync", 2, decode=False)
ASYNC = Setup("async", 3, decode=True)


def _run(server: Server, prefix: str, *, examples: int, steps: int) -> None:
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
        machine = make_machine(server, prefix, sync, asynchronous, runner)
        run_state_machine_as_test(machine, settings=chosen)
        runner.run(asynchronous.aclose())  # type: ignore[attr-defined]


def test_owners_do_what_the_model_does(server: Server, prefix: str) -> None:
    _run(server, prefix, examples=15, steps=40)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_owners_do_what_the_model_does_at_length(server: Server, prefix: str) -> None:
    _run(server, prefix, examples=300, steps=80)
