"""The rules of each format: one module for each provider or framework, and no SDK in any."""

from ._format import Format, Message
from .agent_framework import AgentFramework
from .anthropic import AnthropicMessages
from .google import GoogleContents
from .langchain import LangChain
from .llama_index import LlamaIndex
from .openai import OpenAIChat, OpenAIResponses
from .pydantic_ai import PydanticAI, PydanticAILog
from .railtracks import Railtracks

__all__ = ["FORMATS", "Format", "Message"]

FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        OpenAIChat("openai.chat"),
        OpenAIResponses("openai.responses"),
        AnthropicMessages("anthropic.messages"),
        GoogleContents("google.contents"),
        LangChain("langchain"),
        PydanticAI("pydantic_ai"),
        PydanticAILog("pydantic_ai.log"),
        AgentFramework("agent_framework"),
        LlamaIndex("llama_index"),
        Railtracks("railtracks"),
    )
}
"""The formats whose rules are known, by name."""
