"""What images cost: their size is read from the first bytes, the rules are the providers'."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.context._images import (
    anthropic_tokens,
    google_tokens,
    image_size,
    openai_tokens,
)
from turnstore.context.tokens import token_counter

IMAGES = sorted((Path(__file__).parent / "images").iterdir())  # each has its size in its name
PNG = next(path.read_bytes() for path in IMAGES if path.name.startswith("1000x600"))
PHOTO = next(path.read_bytes() for path in IMAGES if "exif" in path.name)

WEBP = struct.Struct("<4sI4s4sI")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sized(path: Path) -> tuple[int, int]:
    width, _, height = path.name.partition("-")[0].partition("x")
    return int(width), int(height)


# Sizes


def test_there_are_images_of_each_kind() -> None:
    assert {path.suffix for path in IMAGES} == {".png", ".jpg", ".gif", ".webp"}
    assert {path.read_bytes()[12:16] for path in IMAGES if path.suffix == ".webp"} == {
        b"VP8 ", b"VP8L", b"VP8X",
    }  # fmt: skip


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_the_size_of_an_image_is_read(path: Path) -> None:
    data = path.read_bytes()
    assert image_size(encoded(data)) == sized(path)
    assert image_size(base64.urlsafe_b64encode(data).decode()) == sized(path)
    assert image_size(f"data:image/any;name=a;base64,{encoded(data)}") == sized(path)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_only_the_first_bytes_are_looked_at(path: Path) -> None:
    """What comes after them may be anything, and of any length."""
    data = encoded(path.read_bytes())
    first = data[: 40 if path.suffix != ".jpg" else 1200]
    assert image_size(first + "!" * 10_000_000) == sized(path)


def test_the_size_of_a_photo_stands_behind_its_profiles() -> None:
    profile = b"\xff\xe2\xff\xff" + bytes(0xFFFD)
    for segments in (1, 2, 30):
        for filled in range(3):  # so that segments begin at each place in a group of base64
            data = PHOTO[:2] + profile * segments + b"\xff" * filled + PHOTO[2:]
            assert image_size(encoded(data)) == (1536, 1024)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_what_ends_too_early_has_no_size(path: Path) -> None:
    data, size = path.read_bytes(), sized(path)
    known = [image_size(encoded(data[:length])) for length in range(min(len(data), 700))]
    assert set(known) <= {None, size}
    assert known[0] is None
    assert known[-1] == size
    assert known == sorted(known, key=lambda one: one is not None), "known from one length on"


def png(width: int, height: int) -> bytes:
    return PNG[:16] + struct.pack(">II", width, height) + PNG[24:]


@pytest.mark.parametrize(
    "data",
    [
        png(0, 600),
        png(1000, 0),
        png(1 << 31, 600),
        png((1 << 32) - 1, (1 << 32) - 1),
        PNG.replace(b"IHDR", b"CgBI", 1),
        b"GIF89b" + bytes(40),
        b"BM" + bytes(60),
        b"\xff\xd8\xff",
        b"\xff\xd8" + b"\xff\xe0\x00\x00" * 100_000,  # lengths that lead nowhere
        b"\xff\xd8" + b"\xff\xe0\x00\x02" * 100_000,
        b"\xff\xd8" + b"\xff" * 100_000,
        b"\xff\xd8\xff\xda" + bytes(100),  # the picture begins, and nothing said its size
        b"\xff\xd8\xff\xe0\x00\x04??no segment",
        WEBP.pack(b"RIFF", 40, b"WEBP", b"VP8?", 30) + bytes(40),
        WEBP.pack(b"RIFF", 40, b"WEBP", b"VP8 ", 30) + bytes(40),
        WEBP.pack(b"RIFF", 40, b"WEBP", b"VP8L", 30) + bytes(40),
        b"",
    ],
)
def test_what_is_no_image_of_a_size_has_none(data: bytes) -> None:
    assert image_size(encoded(data)) is None


@pytest.mark.parametrize(
    "text",
    ["https://example.com/a.png", "data:image/svg+xml,<svg/>", "data:", "iVBOR\nw0KGgo", "é" * 50],
)
def test_what_is_no_base64_has_no_size(text: str) -> None:
    assert image_size(text) is None


@given(st.sampled_from([path.read_bytes()[:700] for path in IMAGES]), st.data())
def test_whatever_is_changed_in_an_image_nothing_is_raised(
    image: bytes, data: st.DataObject
) -> None:
    changed = bytearray(image)
    for at in data.draw(st.lists(st.integers(0, len(image) - 1), max_size=6)):
        changed[at] = data.draw(st.integers(0, 255))
    size = image_size(encoded(bytes(changed)))
    if size is not None:
        assert all(0 < side <= 65536 for side in size)
        assert 85 < openai_tokens(size) <= 1445
        assert 0 < anthropic_tokens(size) <= 1568
        assert 258 <= google_tokens(size) <= 258 * 24


# Rules


@pytest.mark.parametrize(
    "size, tokens",
    [
        ((1024, 1024), 765),  # these two are OpenAI's own examples
        ((2048, 4096), 1105),
        ((512, 512), 255),
        ((1, 1), 255),
        ((513, 512), 425),
        ((1920, 1080), 1105),
        ((65536, 1), 85 + 4 * 170),
        ((2048, 768), 1445),
    ],
)
def test_openais_tiles(size: tuple[int, int], tokens: int) -> None:
    assert openai_tokens(size) == openai_tokens(size[::-1]) == tokens


@pytest.mark.parametrize(
    "size, tokens",
    [
        ((28, 28), 1),
        ((29, 28), 2),
        ((200, 200), 64),
        ((1000, 1000), 1296),
        ((1092, 1092), 1521),
        ((1280, 720), 1196),
        ((4000, 3000), 1568),
        ((3136, 28), 56),
        ((65536, 1), 56),
    ],
)
def test_anthropics_patches(size: tuple[int, int], tokens: int) -> None:
    assert anthropic_tokens(size) == anthropic_tokens(size[::-1]) == tokens


@pytest.mark.parametrize(
    "size, tiles",
    [
        ((384, 384), 1),
        ((385, 100), 2),
        ((960, 540), 6),  # Google's own example
        ((768, 768), 4),
        ((4032, 3024), 12),
        ((65536, 65536), 16),
        ((65536, 1), 12),
    ],
)
def test_geminis_tiles(size: tuple[int, int], tiles: int) -> None:
    assert google_tokens(size) == google_tokens(size[::-1]) == 258 * tiles


# In messages

DATA = encoded(PNG)  # 1000 x 600
URL = f"data:image/png;base64,{DATA}"
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}
OPENAI = 85 + 170 * 4
ANTHROPIC = 36 * 22
GOOGLE = 258 * 6


@pytest.mark.parametrize(
    "part, tokens",
    [
        ({"type": "image_url", "image_url": {"url": URL}}, OPENAI),
        ({"type": "image_url", "image_url": {"url": URL, "detail": "high"}}, OPENAI),
        ({"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, 85),
        ({"type": "input_image", "image_url": URL, "detail": "auto"}, OPENAI),
        ({"type": "input_image", "image_url": URL, "detail": "low"}, 85),
        ({"type": "image_url", "image_url": URL}, OPENAI),
        ({"type": "image_generation_call", "result": DATA}, OPENAI),
        ({"type": "image", "source": SOURCE}, ANTHROPIC),
        ({"type": "image", "mime_type": "image/png", "base64": DATA}, OPENAI),
        ({"inlineData": {"mimeType": "image/png", "data": DATA}}, GOOGLE),
        ({"inline_data": {"mime_type": "image/png", "data": DATA}}, GOOGLE),
        # Their size cannot be seen.
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, 765),
        ({"type": "input_image", "file_id": "f"}, 765),
        ({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}, 765),
        ({"fileData": {"mimeType": "image/png", "fileUri": "u"}}, 258),
    ],
)
def test_an_image_in_a_message_costs_what_its_provider_says(
    part: dict[str, Any], tokens: int
) -> None:
    counter = token_counter(None)
    around = counter({"role": "user", "content": []})
    assert counter({"role": "user", "content": [part]}) == around + tokens


def test_an_image_in_the_result_of_a_tool_costs_the_same() -> None:
    counter = token_counter(None)
    image = {"type": "image", "source": SOURCE}
    result = {"type": "tool_result", "tool_use_id": "t", "content": []}
    without = counter({"role": "user", "content": [result]})
    assert counter({"role": "user", "content": [{**result, "content": [image]}]}) == (
        without + ANTHROPIC
    )
