"""The rules of each format: one module for each provider or framework, and no SDK in any."""

from ._format import Format, Message
from .anthropic import AnthropicMessages
from .langchain import LangChain
from .openai import OpenAIChat, OpenAIResponses

__all__ = ["FORMATS", "Format", "Message"]

FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        OpenAIChat("openai.chat"),
        OpenAIResponses("openai.responses"),
        AnthropicMessages("anthropic.messages"),
        LangChain("langchain"),
    )
}
"""The formats whose rules are known, by name."""
