"""Tool calls as the servers of many providers stream them."""

from __future__ import annotations

import gc

import pytest

from tests.clients.streams import Json, call, calls, message, piece


class TestToolCalls:
    def test_openai(self) -> None:
        assert calls(
            piece("", id="call_1", type="function", name="weather"),
            piece('{"city"'),
            piece(':"Paris"}'),
        ) == [call("weather", '{"city":"Paris"}')]

    def test_two_calls_interleaved_and_out_of_order(self) -> None:
        assert calls(
            piece("{", index=1, id="b", type="function", name="g"),
            piece("{", index=0, id="a", type="function", name="f"),
            piece("}", index=1),
            piece('"x":1}', index=0),
        ) == [call("f", '{"x":1}', "a"), call("g", "{}", "b")]

    def test_deepseek_and_qwen_repeat_id_type_and_name(self) -> None:
        same: Json = {"id": "call_1", "type": "function", "name": "f"}
        assert calls(*(piece(text, **same) for text in ('{"a', '":', "1}"))) == [
            call("f", '{"a":1}')
        ]

    def test_nulls_and_empty_texts_in_place_of_what_was_said(self) -> None:
        assert calls(
            piece(None, id="call_1", type="function", name="f"),
            piece('{"a":', id=None, type=None, name=None),
            piece("1}", id="", type="function", name=""),
        ) == [call("f", '{"a":1}')]

    def test_vllm_invents_an_id_for_every_delta(self) -> None:
        assert calls(
            piece("", id="x1", type="function", name="f"),
            piece('{"a":', id="x2", type="function"),
            piece("1}", id="x3", type="function", name="f"),
        ) == [call("f", '{"a":1}', "x1")]

    def test_gemini_gives_every_call_position_0(self) -> None:
        assert calls(
            piece('{"c":"Rome"}', id="a", type="function", name="f"),
            piece('{"c":"Oslo"}', id="b", type="function", name="f"),
            piece("{}", id="c", type="function", name="g"),
        ) == [
            call("f", '{"c":"Rome"}', "a"),
            call("f", '{"c":"Oslo"}', "b"),
            call("g", "{}", "c"),
        ]

    def test_gemini_with_empty_ids(self) -> None:
        assert calls(
            piece('{"c":"Rome"}', id="", type="function", name="f"),
            piece('{"c":"Oslo"}', id="", type="function", name="f"),
        ) == [call("f", '{"c":"Rome"}', ""), call("f", '{"c":"Oslo"}', "")]

    def test_gemini_thought_signature(self) -> None:
        extra = {"google": {"thought_signature": "c2ln"}}
        assert calls(
            piece("{}", id="a", type="function", name="f", extra_content=extra),
            piece("", id="a", extra_content=extra),
        ) == [{**call("f", "{}", "a"), "extra_content": extra}]

    def test_mistral_sends_whole_calls_without_positions(self) -> None:
        both = [call("f", '{"a":1}', "a"), call("f", '{"a":1}', "b")]
        assert (
            message({"role": "assistant", "content": "", "tool_calls": both})["tool_calls"] == both
        )

    def test_without_positions_a_call_goes_on_until_another_begins(self) -> None:
        assert calls(
            piece("", index=None, id="a", type="function", name="f"),
            piece('{"x":', index=None),
            piece("1}", index=None),
            piece("", index=None, id="b", type="function", name="f"),
            piece("{}", index=None, id="b"),
        ) == [call("f", '{"x":1}', "a"), call("f", "{}", "b")]

    def test_without_positions_calls_are_found_by_id(self) -> None:
        assert calls(
            piece("{", index=None, id="a", type="function", name="f"),
            piece("{", index=None, id="b", type="function", name="g"),
            piece("}", index=None, id="a"),
            piece("}", index=None, id="b"),
        ) == [call("f", "{}", "a"), call("g", "{}", "b")]

    def test_positions_from_1(self) -> None:
        assert calls(
            piece("{", index=1, id="a", type="function", name="f"), piece("}", index=1)
        ) == [call("f", "{}", "a")]

    def test_a_name_in_pieces(self) -> None:
        assert calls(
            piece(None, id="call_1", type="function", name="get_"),
            piece(None, name="weather"),
            piece("{}"),
        ) == [call("get_weather", "{}")]

    def test_a_name_that_grows(self) -> None:
        assert calls(
            piece("", id="call_1", type="function", name="get_"), piece("{}", name="get_weather")
        ) == [call("get_weather", "{}")]

    def test_custom_tool(self) -> None:
        deltas = [
            {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": ""}},
            {"index": 0, "custom": {"input": "SELECT "}},
            {"index": 0, "custom": {"input": "1"}},
        ]
        assert calls(*deltas) == [
            {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
        ]

    def test_custom_tools_with_ids_at_one_position(self) -> None:
        deltas = [
            {"index": 0, "id": i, "type": "custom", "custom": {"name": "sql", "input": i}}
            for i in ("a", "b")
        ]
        assert [one["custom"]["input"] for one in calls(*deltas)] == ["a", "b"]

    def test_arguments_as_an_object(self) -> None:
        delta = {
            "index": 0,
            "id": "a",
            "type": "function",
            "function": {"name": "f", "arguments": {"x": 1}},
        }
        assert calls(delta)[0]["function"]["arguments"] == {"x": 1}

    def test_legacy_function_call(self) -> None:
        reply = message(
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
            {"function_call": {"arguments": '{"a"'}},
            {"function_call": {"name": "f", "arguments": ":1}"}},
        )
        assert reply["function_call"] == {"name": "f", "arguments": '{"a":1}'}

    def test_an_empty_list_of_calls_is_no_calls(self) -> None:
        assert message({"content": "a", "tool_calls": []}) == {"role": "assistant", "content": "a"}

    def test_a_list_of_nulls_is_no_calls(self) -> None:
        assert message({"content": "a", "tool_calls": [None]}) == {
            "role": "assistant",
            "content": "a",
        }


class TestArguments:
    """What is JSON when joined is joined; only what is not may be something else."""

    @pytest.mark.parametrize(
        "pieces",
        [
            pytest.param(['{"a"', '{"a":', '{"a":1}'], id="growing"),
            pytest.param(['{"a"', '{"a"', '{"a":1}', '{"a":1}'], id="growing, said twice"),
            pytest.param(['{"a"', ":1}", '{"a":1}'], id="pieces, then the whole"),
            pytest.param(['{"a":1}', '{"a":1}'], id="the whole twice"),
            pytest.param(["{}", '{"a"', ":1}"], id="an empty object first"),
            pytest.param(["", '{"a":1}', ""], id="empty pieces"),
            pytest.param(["{", '"a"', ":", "1", "}"], id="pieces"),
        ],
    )
    def test_one_object(self, pieces: list[str]) -> None:
        first, *rest = pieces
        deltas = [piece(first, id="call_1", type="function", name="f"), *map(piece, rest)]
        assert calls(*deltas) == [call("f", '{"a":1}')]

    def test_pieces_that_look_like_growth_but_read_when_joined(self) -> None:
        first = piece('{"', id="call_1", type="function", name="f")
        assert calls(first, piece('{":1}')) == [call("f", '{"{":1}')]

    @pytest.mark.parametrize("pieces", [['{"a":', "tru"], ["not", " json"]])
    def test_what_is_no_json_stays_as_it_came(self, pieces: list[str]) -> None:
        deltas = [piece(pieces[0], id="call_1", type="function", name="f"), *map(piece, pieces[1:])]
        assert calls(*deltas)[0]["function"]["arguments"] == "".join(pieces)

    def test_what_is_nested_too_deeply_to_be_read_stays_as_it_came(self) -> None:
        pieces = ['{"a":' * 500, '{"a":' * 9000]
        deltas = [piece(pieces[0], id="call_1", type="function", name="f"), piece(pieces[1])]
        gc.disable()  # callbacks of others in a collection would fail at the end of the stack
        try:
            made = calls(*deltas)
        finally:
            gc.enable()
        assert made[0]["function"]["arguments"] == "".join(pieces)
