"""A request that is repeated with its turn id: the model is asked once, if that is wished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.test_failures import spoken
from tests.conformance.views import stored
from tests.leases.line import Queue
from turnstore import AlreadySavedError
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = ONE_SERVER


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_is_saved_is_not_asked_again(
    driver: Driver, chat: AsyncConversation, *, stream: bool
) -> None:
    await _repeated(driver, chat, stream=stream, on_load_error="continue")


@pytest.mark.parametrize("stream", [False, True])
async def test_serialize_gives_the_lease_back_where_the_turn_is_saved(
    driver: Driver, chat: AsyncConversation, server: Server, *, stream: bool
) -> None:
    await _repeated(driver, chat, stream=stream, on_conflict="serialize")
    assert not Queue(server, chat).line.held


async def _repeated(
    driver: Driver, chat: AsyncConversation, *, stream: bool, **options: Any
) -> None:
    options |= {"turn_id": "job-7", "on_duplicate": "raise"}
    driver.script(Reply("the first answer"))
    first = await spoken(driver, driver.remember(chat, **options), "Hi", stream=stream)
    assert first == "the first answer"
    asked = len(driver.asked)
    with pytest.raises(AlreadySavedError) as caught:
        await spoken(driver, driver.remember(chat, **options), "Hi", stream=stream)
    assert len(driver.asked) == asked
    assert caught.value.saved.id == "job-7"
    assert "the first answer" in str(caught.value.reply)
    assert await stored(chat) == [["Hi", "the first answer"]]
