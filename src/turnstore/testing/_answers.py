"""The model in the model server: what it answers by itself, and what it refuses as OpenAI would."""

from __future__ import annotations

import re

from ._learning import facts_in
from ._replies import Json, dicts

# "The user's" is how an extraction says it, and so what was recalled.
_TOLD = re.compile(r"\b(?:my|the user's) ([\w ]+?) is ([^.!?\n]+)", re.IGNORECASE)
_ASKED = re.compile(r"\bwhat(?: is|'s) my ([\w ]+?)(?: called)?\s*\?", re.IGNORECASE)

# Who may say what is somebody's: instructions do, where they hold what was recalled.
_TELLERS = ("user", "system", "developer")


def answer(messages: list[Json], instructions: str = "") -> str:
    """Answer from what is sent alone, always the same.

    Told "My name is Ada." and asked "What is my name?", it says "Your name is Ada."; the same with
    anything else that is somebody's. It may be told so by instructions, too; the last word counts.
    Asked for facts by the default prompt of an extraction, it draws those that it is told so.
    To anything else it says how many messages it saw, and what the last one says.

    Args:
        messages: What was said, and the instructions among it.
        instructions: Those that stand beside it, and come first.
    """
    last = messages[-1] if messages else {}
    said = text_of(last)
    if _is_result(last):
        return f"The tool says: {said}"
    if (drawn := facts_in(said, _TOLD)) is not None:
        return drawn
    told_by = [message for message in messages if message.get("role") in _TELLERS]
    texts = [instructions, *map(text_of, told_by)]
    if asked := _ASKED.search(said):
        about = asked[1].lower()
        for text in reversed(texts):
            for what, value in reversed(_TOLD.findall(text)):
                if what.lower() == about:
                    return f"Your {about} is {value.strip()}."
        return f"You have not told me your {about}."
    if told := _TOLD.search(said):
        return f"I will remember that your {told[1].lower()} is {told[2].strip()}."
    count = f"{len(messages)} message{'' if len(messages) == 1 else 's'}"
    return f"I see {count}; the last one says: {said}"


def text_of(message: Json) -> str:
    """The text of a message, of a tool's result or of Gemini's content."""
    content: object = message.get("content", message.get("output", message.get("parts")))
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in dicts(content))


def complaint(messages: list[Json]) -> str | None:
    """What OpenAI would refuse these messages for, as an HTTP 400; None if it takes them.

    Every tool call has its result before the conversation goes on, every result its call, and
    what must not be null is not null.
    """
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        for key in ("tool_calls", "function_call"):
            if key in message and not message[key]:
                return f"messages[{number}].{key} is null or empty"
        if _is_result(message):
            call_id = str(message.get("tool_call_id", message.get("call_id")))
            if call_id not in open_calls:
                return f"messages[{number}] is the result of no call before it: {call_id}"
            open_calls.remove(call_id)
        elif called := _called(message):
            open_calls += called
        elif open_calls and message.get("type", "message") == "message":
            return f"messages[{number}] comes before the results of {', '.join(open_calls)}"
    return f"no results of {', '.join(open_calls)}" if open_calls else None


def _is_result(message: Json) -> bool:
    return message.get("role") == "tool" or str(message.get("type")).endswith("_call_output")


def _called(message: Json) -> list[str]:
    if str(message.get("type")) in {"function_call", "custom_tool_call"}:
        return [str(message.get("call_id"))]
    return [str(call.get("id")) for call in dicts(message.get("tool_calls"))]
