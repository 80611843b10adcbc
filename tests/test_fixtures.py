"""The fixtures themselves: servers, client setups, the key prefix and its leak check."""

from __future__ import annotations

import os
from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest

from tests.servers import found as finding
from tests.servers import setups

if TYPE_CHECKING:
    from tests.conftest import OwnServer
    from tests.servers.running import AsyncClient, Client, Server
    from tests.servers.setups import Setup

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("lacking", finding.missing() or [None], ids=str)
def test_every_server_of_the_matrix_is_here(lacking: finding.Missing | None) -> None:
    if lacking:
        finding.lack(f"{lacking.name} is not here: {lacking.remedy}")


def test_a_server_answers(server: Server) -> None:
    assert server.raw.ping()


def test_a_sync_client_is_set_up_as_asked(
    redis_client: Client, setup: Setup, prefix: str, server: Server
) -> None:
    redis_client.set(f"{prefix}:a", "é", px=60_000)
    assert redis_client.get(f"{prefix}:a") == ("é" if setup.decode else "é".encode())
    assert server.raw.get(f"{prefix}:a") == "é".encode()


async def test_an_async_client_is_set_up_as_asked(
    async_redis_client: AsyncClient, setup: Setup, prefix: str
) -> None:
    await async_redis_client.set(f"{prefix}:a", "é", px=60_000)
    expected = "é" if setup.decode else "é".encode()
    assert await async_redis_client.get(f"{prefix}:a") == expected


@pytest.mark.servers("redis", "valkey")
def test_a_client_speaks_the_protocol_asked_for(redis_client: Client, setup: Setup) -> None:
    assert redis_client.client_info()["resp"] in (setup.protocol, str(setup.protocol))


def test_every_server_runs_scripts(redis_client: Client, prefix: str) -> None:
    script = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('PEXPIRE', KEYS[1], 60000)"
    assert redis_client.eval(script, 1, f"{prefix}:a", "x") == 1


def test_each_pair_of_choices_occurs_in_the_covering_setups() -> None:
    choices = {"client": ("sync", "async"), "protocol": (2, 3), "decode": (False, True)}
    for one, other in combinations(choices, 2):
        for pair in product(choices[one], choices[other]):
            assert any(
                (getattr(setup, one), getattr(setup, other)) == pair for setup in setups.PAIRWISE
            )


def test_one_setup_for_each_client_is_another_for_each_test() -> None:
    chosen = {setups.one_for_each_client(f"test_{n} on a server") for n in range(64)}
    assert {setup for pair in chosen for setup in pair} == set(setups.ALL)
    for sync, other in chosen:
        assert (sync.client, other.client) == ("sync", "async")
        assert sync.protocol != other.protocol
        assert sync.decode != other.decode


def test_the_choice_is_the_same_in_each_process() -> None:
    names = [str(one) for one in setups.one_for_each_client("a test")]
    assert names == ["sync-resp2-bytes", "async-resp3-str"]


def test_a_key_is_seen_with_its_life_and_removed(server: Server, prefix: str) -> None:
    server.raw.set(f"{prefix}:brief", "x", px=60_000)
    server.raw.set(f"{prefix}:eternal", "x")
    lives = server.lives(prefix)
    assert 0 < lives[f"{prefix}:brief".encode()] <= 60_000
    assert lives[f"{prefix}:eternal".encode()] == -1
    server.delete(lives)
    assert server.lives(prefix) == {}


def test_a_key_without_a_life_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.conftest import *")
    pytester.makeini(
        """
        [pytest]
        asyncio_mode = auto
        asyncio_default_fixture_loop_scope = function
        markers =
          servers
          one_setup
          keeps_keys
        """
    )
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.servers("fakeredis", "redis-url")

        def test_leaves_it(server, prefix):
            server.raw.set(f"{prefix}:eternal", "x")

        @pytest.mark.keeps_keys
        def test_leaves_it_on_purpose(server, prefix):
            server.raw.set(f"{prefix}:eternal", "x")

        def test_leaves_a_brief_one(server, prefix):
            server.raw.set(f"{prefix}:brief", "x", px=60000)
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*left without a time to live: test-*:eternal"])


def test_servers_that_are_not_here_are_no_silence(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest("from tests.conftest import *")
    pytester.makeini(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers =\n  servers\n  one_setup"
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.servers("redis-1")
        def test_that_is_for_one(server):
            pass

        @pytest.mark.servers("redis-1")
        @pytest.mark.one_setup
        def test_that_is_for_one_with_a_client(make_store):
            pass

        @pytest.mark.servers("redis-1", "fakeredis", "", first=True)
        def test_that_any_will_do_for(server, request):
            assert request.node.callspec.id in ("fakeredis", "redis-url")
        """
    )
    monkeypatch.delenv("CI", raising=False)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["*the test is for redis-1, and *"])
    if not os.environ.get("REDIS_URL"):
        monkeypatch.setenv("CI", "1")
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
        result.assert_outcomes(passed=1, errors=2)


@pytest.mark.servers("redis-url", "redis", "valkey")
def test_an_own_server_may_be_broken(server: Server, own_server: OwnServer) -> None:
    mine = own_server(appendonly=True)
    assert mine.port not in {port for _, port in server.addresses}
    mine.kill()
    assert server.raw.ping()


def test_a_missing_server_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="gone"):
        finding.lack("gone")
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="gone"):
        finding.lack("gone")


def test_a_missing_package_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no_such\.sdk is not installed"):
        finding.needs("no_such.sdk")
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match=r"no_such\.sdk is not installed"):
        finding.needs("no_such.sdk")
    assert finding.needs("json").dumps(1) == "1"


@pytest.mark.parametrize("name", ["testcontainers.core.container"])
def test_the_container_fallback_can_be_imported(name: str) -> None:
    module = finding.needs(name)
    wanted = {"with_exposed_ports", "start", "stop", "get_container_host_ip", "get_exposed_port"}
    assert wanted <= set(dir(module.DockerContainer))
