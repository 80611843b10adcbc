"""Tools: call and result are one turn, and a broken loop reaches no model again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.views import kept, stored
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from turnstore import AsyncConversation

pytestmark = ONE_SERVER


class ToolError(Exception):
    """What the tool raises."""


def weather(city: str) -> str:
    assert city == "Rome"
    return "21 degrees"


def broken(city: str) -> str:
    raise ToolError(city)


async def test_a_tool_loop_is_one_turn(driver: Driver, chat: AsyncConversation) -> None:
    memory = driver.remember(chat)
    driver.script(Reply.tool_call("weather", city="Rome"))
    answer = await driver.use_tool(memory, "How warm is it in Rome?", weather)
    assert answer == "The tool says: 21 degrees"
    (turn,) = await stored(chat)
    assert (turn[0], turn[-1]) == ("How warm is it in Rome?", answer)
    assert "21 degrees" in str(await kept(chat))

    await driver.say(memory, "Thanks")
    sent = str(driver.asked[-1])
    assert (sent.count("Rome?"), sent.count("weather")) == (1, driver.tool_named)
    assert sent.count("'21 degrees'") == 1 or sent.count('"21 degrees"') == 1


async def test_a_tool_that_fails_leaves_nothing_that_the_model_would_refuse(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    await driver.say(memory, "My name is Ada.")
    driver.script(Reply.tool_call("weather", city="Rome"))
    with pytest.raises(ToolError):
        await driver.use_tool(memory, "How warm is it in Rome?", broken)
    assert await driver.say(memory, "What is my name?") == "Your name is Ada."
    assert "weather" not in str(driver.asked[-1])


async def test_a_model_that_fails_after_the_tool_leaves_nothing_that_it_would_refuse(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    await driver.say(memory, "My name is Ada.")
    driver.script(Reply.tool_call("weather", city="Rome"), Reply.error(400))
    with pytest.raises(Exception, match="scripted error"):
        await driver.use_tool(memory, "How warm is it in Rome?", weather)
    assert await driver.say(memory, "What is my name?") == "Your name is Ada."
    assert "weather" not in str(driver.asked[-1])
