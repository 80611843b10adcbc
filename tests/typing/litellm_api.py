"""The types of LiteLLM's functions and Router with a memory; never run.

mypy sees `litellm.completion` itself as Any, so it is taken from where LiteLLM has it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, assert_type

import litellm
from litellm.chat_completions.dispatch import (  # pyright: ignore[reportMissingTypeStubs]  # typed
    ChatResult,
    acompletion,
    completion,
)
from litellm.router import Router

from turnstore import AsyncConversation, Conversation


def functions(chat: Conversation) -> None:
    made = chat.wrap(completion)("gpt-5", [{"role": "user", "content": "Hi"}])
    assert_type(made, ChatResult | Coroutine[object, object, ChatResult])
    told = chat.wrap(litellm.completion, on_conflict="reject")
    told(model="gpt-5", messages=[{"role": "user", "content": "Hi"}], stream=True)


async def async_functions(chat: AsyncConversation) -> None:
    made = await chat.wrap(acompletion)(model="gpt-5", messages=[])
    assert_type(made, ChatResult)


def routers(chat: Conversation, router: Router, messages: list[dict[str, str]]) -> Any:
    told = chat.wrap(router)
    assert_type(told, Router)
    assert_type(told.completion("m", messages), ChatResult)
    return told.responses(model="m", input="Hi")
