"""Key names: what they look like for ever, and that no id can reach outside its digest."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore import _keys
from turnstore._place import Home, Settings

SETTINGS = Settings(
    max_messages=None, ttl=None, max_turn_messages=None, max_turn_bytes=None, count_tokens=None
)
SECRET = b"0123456789abcdef"

GOLDEN_PLAIN = (
    "turnstore:1:{98cd1afa692beef11e84a0851443d893:3907a8baee85e662a84739cde36273d0}:turns"
)
GOLDEN_SECRET = (
    "turnstore:1:{12d056a63c54fc58d5b553789ce1e930:7e0d1fd78ea952407e70c7ceb930f1c7}:turns"  # noqa: S105 - the name of a key
)
GOLDEN_OWNED = (
    "turnstore:1:{98cd1afa692beef11e84a0851443d893:8323e2b9fa06f4c7ac4d72ef965d571c}:"
    "3907a8baee85e662a84739cde36273d0:turns"
)
GOLDEN_UNICODE = "p:q:1:{7197f3da678c0594d88fd86b92f9a44c:1bcb10f84fe53aa62221e076743a7327}:turns"

HOSTILE = [
    "a", "A", "a ", " a", "a\n", "a:b", "a,b", "*", "?", "{", "}", "{}", "a}b", "a{b}", "%s", "\\",
    "\x00", "a\x00", "a\x00b", "é", "e\N{COMBINING ACUTE ACCENT}", "😀", "\N{ZERO WIDTH SPACE}",
    "123e4567-e89b-12d3-a456-426614174000", "1", "-1", "0", "None", "../..", "\uffff", "x" * 10_000,
    "x" * 10_001,
]  # fmt: skip


def key(
    name: str = "app",
    id_: str = "conv",
    *,
    prefix: str = "turnstore",
    secret: bytes | None = None,
    owner: str | None = None,
) -> str:
    return str(Home(name, prefix, secret, SETTINGS).place(id_, owner).keys)


def test_golden_names() -> None:
    """These never change: a new version has to find what an older one stored."""
    assert key("support:tenant-42", "conv-1") == GOLDEN_PLAIN
    assert key("support:tenant-42", "conv-1", secret=SECRET) == GOLDEN_SECRET
    assert key("é", "😀", prefix="p:q") == GOLDEN_UNICODE
    assert key("support:tenant-42", "conv-1", owner="ada") == GOLDEN_OWNED


def test_golden_names_of_an_owner() -> None:
    keys = Home("support:tenant-42", "turnstore", None, SETTINGS).owner("ada")
    tag = GOLDEN_OWNED.partition("}:")[0] + "}:"
    assert keys.tag.decode() == tag
    names = [name.decode().removeprefix(tag) for name in keys]
    assert names == ["generation", "conversations", "lives", "names", "cleared"]
    assert names == list(keys._fields)


@pytest.mark.parametrize("id_", HOSTILE, ids=range(len(HOSTILE)))
def test_the_shape_of_a_key_does_not_depend_on_the_id(id_: str) -> None:
    shape = r"turnstore:1:\{[0-9a-f]{32}:[0-9a-f]{32}\}:turns"
    assert re.fullmatch(shape, key(id_=id_))
    assert re.fullmatch(shape, key(name=id_))


def test_hostile_ids_are_told_apart() -> None:
    assert len({key(id_=id_) for id_ in HOSTILE}) == len(HOSTILE)
    assert len({key(name=id_) for id_ in HOSTILE}) == len(HOSTILE)


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), max_size=8, unique=True))
def test_two_conversations_never_share_a_key(pairs: list[tuple[str, str]]) -> None:
    pairs = [pair for pair in pairs if not any("\ud800" <= c <= "\udfff" for c in "".join(pair))]
    assert len({key(*pair) for pair in pairs}) == len(pairs)


def test_a_name_cannot_be_taken_for_an_id() -> None:
    assert key("a", "b") != key("b", "a")
    store, conversation = re.findall("[0-9a-f]{32}", key("same", "same"))
    assert store != conversation
    for (one, other), (third, fourth) in combinations(
        [("a:b", "c"), ("a", "b:c"), ("a:b:", "c")], 2
    ):
        assert key(one, other) != key(third, fourth)


@pytest.mark.parametrize("id_", HOSTILE, ids=range(len(HOSTILE)))
def test_the_shape_of_an_owned_key_does_not_depend_on_the_ids(id_: str) -> None:
    shape = r"turnstore:1:\{[0-9a-f]{32}:[0-9a-f]{32}\}:[0-9a-f]{32}:turns"
    assert re.fullmatch(shape, key(id_=id_, owner="ada"))
    assert re.fullmatch(shape, key(owner=id_))


def test_hostile_owners_are_told_apart() -> None:
    assert len({key(owner=id_) for id_ in HOSTILE}) == len(HOSTILE)
    tags = {key(owner=id_).partition("}")[0] for id_ in HOSTILE}
    assert len(tags) == len(HOSTILE)


@given(st.lists(st.tuples(*[st.text(min_size=1)] * 3), max_size=8, unique=True))
def test_two_owned_conversations_never_share_a_key(all_of_them: list[tuple[str, ...]]) -> None:
    fit = [ids for ids in all_of_them if not any("\ud800" <= c <= "\udfff" for c in "".join(ids))]
    keys = {key(name, id_, owner=owner) for name, id_, owner in fit}
    assert len(keys) == len(fit)
    assert keys.isdisjoint(key(name, id_) for name, id_, _ in fit)


def test_an_owner_cannot_be_taken_for_a_conversation() -> None:
    owned, free = key(id_="same", owner="same"), key(id_="same")
    owner, conversation = owned.split(":")[3].rstrip("}"), owned.split(":")[4]
    assert owner != conversation
    assert conversation in free
    assert owner not in free
    assert key("same", owner="same") != key("same", "same")


def test_a_secret_changes_an_owner_s_digest() -> None:
    plain, keyed = (re.findall("[0-9a-f]{32}", key(secret=s, owner="ada")) for s in (None, SECRET))
    assert len(plain) == 3
    assert not set(plain) & set(keyed)


def test_an_owner_s_conversations_lie_in_one_slot() -> None:
    tags = {re.findall(r"\{.*\}", key(id_=id_, owner="ada"))[0] for id_ in HOSTILE}
    assert len(tags) == 1


def test_the_hash_tag_is_the_two_digests() -> None:
    name = key(prefix="my:app")
    tag = name[name.index("{") + 1 : name.index("}")]
    assert re.fullmatch("[0-9a-f]{32}:[0-9a-f]{32}", tag)
    assert name.count("{") == name.count("}") == 1


def test_a_secret_changes_both_digests() -> None:
    plain, keyed = (re.findall("[0-9a-f]{32}", key(secret=s)) for s in (None, SECRET))
    other = re.findall("[0-9a-f]{32}", key(secret=SECRET + b"!"))
    assert not set(plain) & set(keyed)
    assert not set(keyed) & set(other)
    assert key(secret=SECRET) == key(secret=SECRET)


@pytest.mark.parametrize("size", [16, 64])
def test_secrets_of_16_to_64_bytes_are_taken(size: int) -> None:
    assert key(secret=b"s" * size) != key()


@pytest.mark.parametrize(
    "secret, error",
    [(b"", ValueError), (b"s" * 15, ValueError), (b"s" * 65, ValueError), ("s" * 16, TypeError)],
)
def test_other_secrets_are_refused(secret: bytes, error: type[Exception]) -> None:
    with pytest.raises(error, match="secret"):
        key(secret=secret)


@pytest.mark.parametrize(
    "id_, error, says",
    [
        ("", ValueError, "empty"),
        ("\ud800", ValueError, "lone surrogate at position 0"),
        ("ok\udfff", ValueError, "lone surrogate at position 2"),
        (None, TypeError, "not NoneType"),
        (1, TypeError, "not int"),
        (b"a", TypeError, "not bytes"),
    ],
)
def test_what_is_no_id(id_: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=f"the id of a conversation .*{says}"):
        key(id_=id_)
    with pytest.raises(error, match=f"the name of a store .*{says}"):
        key(name=id_)
    if id_ is not None:  # None is no owner
        with pytest.raises(error, match=f"the id of an owner .*{says}"):
            key(owner=id_)


@pytest.mark.parametrize("prefix", ["", " ", "a b", "a\n", "é", "{", "a}", "{a}", "\x7f", "\x00"])
def test_a_prefix_that_could_move_the_hash_tag_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        key(prefix=prefix)


@pytest.mark.parametrize("prefix", [None, 1, b"a"])
def test_a_prefix_is_text(prefix: str) -> None:
    with pytest.raises(TypeError, match="prefix is text"):
        key(prefix=prefix)


def test_a_refusal_does_not_repeat_the_id() -> None:
    """Ids may be personal; errors end up in logs."""
    with pytest.raises(ValueError, match="lone surrogate") as refused:
        key(id_="ada@example.com\ud800")
    assert "ada" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_version_of_the_data_is_in_the_name() -> None:
    assert _keys.DATA_VERSION == 1
    assert key().split(":")[1] == "1"
