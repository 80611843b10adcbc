"""One module for each SDK whose client can be given a memory, imported only when it is used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from turnstore.aio import AsyncConversation
    from turnstore.conversation import Conversation
    from turnstore.turn import TurnOptions

__all__ = ["wrap"]

C = TypeVar("C")


def wrap(conversation: Conversation | AsyncConversation, client: C, options: TurnOptions) -> C:
    """Give a client the memory of a conversation; what `Conversation.wrap` calls.

    Raises:
        TypeError: The client is of no kind that is known, has a memory already, or is sync where
            the conversation is async, or the other way about.
    """
    sdk = sys.modules.get("openai")  # whoever has a client has imported its SDK
    if sdk is not None and isinstance(client, (sdk.OpenAI, sdk.AsyncOpenAI)):
        from turnstore.clients import openai  # noqa: PLC0415 - imports the SDK

        return openai.wrap(conversation, client, options)
    sdk = sys.modules.get("anthropic._base_client")  # what all of its clients derive from
    if sdk is not None and isinstance(client, (sdk.SyncAPIClient, sdk.AsyncAPIClient)):
        from turnstore.clients import anthropic  # noqa: PLC0415 - imports the SDK

        return anthropic.wrap(conversation, client, options)
    raise TypeError(
        f"wrap knows the clients of openai (also with the base_url of another provider) and of "
        f"anthropic, and not {type(client).__module__}.{type(client).__qualname__}; any other "
        f"client takes its messages from conversation.turn(…)"
    )
