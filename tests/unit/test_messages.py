"""What is taken for a message, and what each format knows of its messages."""

from __future__ import annotations

from collections import UserDict
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pydantic
import pytest

from turnstore.messages import FORMATS, Format, format_named, plain_messages

CHAT = FORMATS["openai.chat"]
RESPONSES = FORMATS["openai.responses"]
OTHER = format_named("some.other")


class Said(pydantic.BaseModel):
    role: str = "user"
    content: str


HI = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    "given, plain",
    [
        ("hi", [HI]),
        ("", [{"role": "user", "content": ""}]),
        (HI, [HI]),
        (Said(content="hi"), [HI]),
        (MappingProxyType(HI), [HI]),
        (UserDict(HI), [HI]),
        ([], []),
        ((), []),
        (["hi", HI, Said(content="hi")], [HI] * 3),
        ((HI,), [HI]),
        ((HI for _ in range(2)), [HI] * 2),
        ({"a": HI}.values(), [HI]),
        (iter(["hi"]), [HI]),
    ],
)
def test_what_is_taken(given: Any, plain: list[dict[str, Any]]) -> None:
    assert plain_messages(given, CHAT) == plain


def test_text_of_the_model() -> None:
    assert plain_messages("hi", CHAT, reply=True) == [{"role": "assistant", "content": "hi"}]


@pytest.mark.parametrize(
    "given", [None, 1, 1.5, True, b"hi", bytearray(b"hi"), memoryview(b"hi"), object()]
)
def test_what_is_no_message(given: Any) -> None:
    with pytest.raises(TypeError, match=type(given).__name__):
        plain_messages(given, CHAT)


class Lists:
    def model_dump(self, **_: object) -> list[int]:
        return [1]


def test_an_object_that_is_no_dict_is_no_message() -> None:
    with pytest.raises(TypeError, match="message 0: Lists became a list"):
        plain_messages(cast("Any", Lists()), CHAT)


@pytest.mark.parametrize("item", [None, 1, b"hi", [HI], (HI,), {"hi"}, ("user", "hi")])
def test_what_is_no_message_in_a_list(item: Any) -> None:
    with pytest.raises(TypeError, match=rf"message 1\b.*{type(item).__name__}"):
        plain_messages([HI, item], CHAT)


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(
        ValueError, match=r"message 2: \.content\[0\]\.image: bytes .*nothing was written"
    ):
        plain_messages([HI, HI, {"role": "user", "content": [{"image": b""}]}], CHAT)


@pytest.mark.parametrize(
    "message", [{}, {"content": "hi"}, {"role": ""}, {"role": None}, {"role": 1}]
)
def test_a_chat_message_has_a_role(message: Any) -> None:
    with pytest.raises(ValueError, match=r"message 0: a message of openai.chat has a role"):
        plain_messages(message, CHAT)


def test_an_item_of_responses_has_a_type_or_a_role() -> None:
    assert plain_messages([{"type": "reasoning"}, HI], RESPONSES)
    with pytest.raises(
        ValueError, match=r"message 0: an item of openai.responses has a type or a role"
    ):
        plain_messages({"content": "hi"}, RESPONSES)


def test_an_unknown_format_asks_for_nothing() -> None:
    assert plain_messages({"anything": 1}, OTHER) == [{"anything": 1}]


def test_the_copy_shares_nothing() -> None:
    mine = {"role": "user", "content": ["a"]}
    (copy,) = plain_messages(mine, CHAT)
    mine["content"].append("b")  # type: ignore[attr-defined]  # a list
    assert copy["content"] == ["a"]


# Formats


def test_a_known_format_is_one_object() -> None:
    assert format_named("openai.chat") is CHAT
    assert type(OTHER) is Format
    assert OTHER.name == "some.other"


@pytest.mark.parametrize("name", ["", " ", "a b", "a\n", "é", "x" * 33, 'a"b', "a\\b"])
def test_a_name_that_no_header_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="format"):
        format_named(name)


@pytest.mark.parametrize("name", [None, 1, b"a"])
def test_a_name_is_text(name: Any) -> None:
    with pytest.raises(TypeError, match="format"):
        format_named(name)


@pytest.mark.parametrize("rules", [CHAT, RESPONSES, OTHER], ids=lambda rules: rules.name)
def test_roles(rules: Format) -> None:
    roles = ["system", "developer", "user", "assistant", "tool"]
    assert [r for r in roles if rules.is_instruction({"role": r})] == ["system", "developer"]
    assert [r for r in roles if rules.is_reply({"role": r})] == ["assistant"]


def call(id_: Any, name: str = "f") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}


@pytest.mark.parametrize(
    "message, calls",
    [
        ({"role": "assistant", "tool_calls": [call("a"), call("b")]}, ["a", "b"]),
        ({"role": "assistant", "tool_calls": None}, []),
        ({"role": "assistant", "tool_calls": []}, []),
        ({"role": "assistant", "content": "hi"}, []),
        ({"role": "assistant", "tool_calls": [call(None), "odd", None]}, ["None"]),
        ({"role": "assistant", "tool_calls": True}, []),
        ({"role": "assistant", "function_call": {"name": "f"}}, ["function:f"]),
        ({"role": "assistant", "function_call": None}, []),
        ({"role": "user", "tool_calls": [call("a")]}, []),
    ],
)
def test_calls_of_chat(message: dict[str, Any], calls: list[str]) -> None:
    assert CHAT.calls(message) == calls


@pytest.mark.parametrize(
    "message, results",
    [
        ({"role": "tool", "tool_call_id": "a"}, ["a"]),
        ({"role": "function", "name": "f"}, ["function:f"]),
        ({"role": "user", "tool_call_id": "a"}, []),
    ],
)
def test_results_of_chat(message: dict[str, Any], results: list[str]) -> None:
    assert CHAT.results(message) == results


@pytest.mark.parametrize(
    "item, calls, results, is_reply",
    [
        ({"type": "function_call", "call_id": "a"}, ["a"], [], True),
        ({"type": "custom_tool_call", "call_id": "a"}, ["a"], [], True),
        ({"type": "local_shell_call", "call_id": "a"}, ["a"], [], True),
        ({"type": "web_search_call", "id": "ws"}, [], [], True),
        ({"type": "reasoning", "encrypted_content": "x"}, [], [], True),
        ({"type": "message", "role": "assistant"}, [], [], True),
        ({"type": "message", "role": "user"}, [], [], False),
        ({"type": "function_call_output", "call_id": "a"}, [], ["a"], False),
        ({"type": "custom_tool_call_output", "call_id": "a"}, [], ["a"], False),
        ({"type": "mcp_approval_request", "id": "m"}, ["m"], [], True),
        ({"type": "mcp_approval_response", "approval_request_id": "m"}, [], ["m"], False),
    ],
)
def test_items_of_responses(
    item: Any, *, calls: list[str], results: list[str], is_reply: bool
) -> None:
    assert RESPONSES.calls(item) == calls
    assert RESPONSES.results(item) == results
    assert RESPONSES.is_reply(item) is is_reply


def test_what_says_nothing_is_dropped_on_the_way_out_but_for_the_content() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    stored = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
        "refusal": None,
        "annotations": [],
        "x": {"y": None},
    }
    assert CHAT.outgoing(stored) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
        "x": {"y": None},
    }
    assert "refusal" in stored


@pytest.mark.parametrize("nothing", [None, []])
def test_a_reply_without_content_or_calls_goes_out_as_an_empty_text(nothing: Any) -> None:
    stored = {"role": "assistant", "content": None, "tool_calls": nothing, "reasoning": "hm"}
    assert CHAT.outgoing(stored) == {"role": "assistant", "content": "", "reasoning": "hm"}


def test_of_an_audio_the_id_goes_out() -> None:
    audio = {"id": "audio_1", "data": "AAAA", "transcript": "hi", "expires_at": 9}
    stored = {"role": "assistant", "content": None, "audio": audio}
    sent = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    assert CHAT.outgoing(stored) == sent


def test_what_has_no_null_goes_out_as_it_is() -> None:
    assert CHAT.outgoing(HI) is HI
    assert RESPONSES.outgoing({"a": None}) == {"a": None}


def test_the_message_is_taken_out_of_a_completion() -> None:
    completion = SimpleNamespace(
        choices=[SimpleNamespace(message=HI), SimpleNamespace(message="other")]
    )
    assert CHAT.answer(completion) is HI
    assert CHAT.answer(HI) is HI
    assert CHAT.answer("hi") == "hi"
    assert RESPONSES.answer(SimpleNamespace(output=[HI])) == [HI]


@pytest.mark.parametrize(
    "content, text",
    [
        ("hi", "hi"),
        (None, ""),
        (["a", {"text": "b"}, {"type": "image"}, {"text": None}, 7], "ab"),
        ([], ""),
        (7, ""),
    ],
)
def test_the_text_of_a_message(content: Any, text: str) -> None:
    assert OTHER.text({"content": content}) == text
