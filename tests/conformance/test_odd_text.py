"""Half a character, which JSON can say and UTF-8 cannot, does not end a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.marks import ONE_SERVER
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from turnstore import AsyncConversation

pytestmark = ONE_SERVER


async def test_half_a_character_does_not_end_a_conversation(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    driver.script(Reply("half \ud83d of it"), Reply("Still here."))
    await driver.say(memory, "Hello")
    assert await driver.say(memory, "And now?") == "Still here."
    assert "half" in str(driver.asked[-1])
