"""One module for each SDK whose client can be given a memory, imported only when it is used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from turnstore.clients._functions import is_litellms

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
    sdk = sys.modules.get("google.genai.client")
    if sdk is not None and isinstance(client, (sdk.Client, sdk.AsyncClient)):
        from turnstore.clients import google  # noqa: PLC0415 - imports the SDK

        return google.wrap(conversation, client, options)
    if is_litellms(client):
        from turnstore.clients import litellm  # noqa: PLC0415 - imports the SDK

        return litellm.wrap(conversation, client, options)
    if callable(client) and not isinstance(client, type):
        from turnstore.clients import callables  # noqa: PLC0415 - for those who use it

        return callables.wrap(conversation, client, options)
    raise TypeError(
        f"wrap knows functions, the clients of openai (also with the base_url of another "
        f"provider), anthropic and google-genai, and the functions and the Router of litellm, "
        f"but not {type(client).__module__}.{type(client).__qualname__}; any other client takes "
        f"its messages from conversation.turn(…)"
    )
