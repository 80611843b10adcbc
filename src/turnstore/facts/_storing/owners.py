"""Work for all owners of a store: who they are, and one after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from turnstore._calls import Flow
from turnstore._erasing import scan
from turnstore.errors import ClosedError, ErasedError, TurnstoreError, UnavailableError

from .._owner import Ground, OwnerPlace

__all__ = ["each", "is_erased", "owners"]

log = logging.getLogger("turnstore")

_ERASED = ("owner", "closed")  # of an ErasedError: nothing of the owner is to stay


def owners(ground: Ground, *parts: str) -> Flow[list[OwnerPlace]]:
    """Find all owners of a store with a key of one of these kinds, of facts where none is given.

    Looks at every key of the server: once for all kinds of facts, and once for each other kind.
    """
    kinds = parts or ("facts",)
    of_facts = [kind for kind in kinds if kind.startswith("facts")]
    patterns = [kind for kind in kinds if kind not in of_facts]
    patterns += ["facts*"] if len(of_facts) > 1 else of_facts
    keys: set[bytes] = set()
    for pattern in patterns:
        keys |= yield from scan("owners", b"", ground.pattern(pattern))
    wanted = [key for key in keys if key.rpartition(b"}:")[2].decode() in kinds]
    places = {place.digest: place for place in map(ground.owner_in, wanted)}
    return [places[digest] for digest in sorted(places)]


def each(
    places: Sequence[OwnerPlace], work: Callable[[OwnerPlace], Flow[None]], operation: str
) -> Flow[int]:
    """Do something for each owner; what fails for one keeps it from no other.

    Args:
        places: The owners.
        work: What is done.
        operation: What the caller asked for, in the words of an error.

    Returns:
        How many were passed over, as they are being erased, or were meanwhile.

    Raises:
        UnavailableError, ClosedError: At once.
        Exception: The first one, when it was done for the others.
    """
    failed: list[tuple[OwnerPlace, Exception]] = []
    passed = 0
    for place in places:
        try:
            yield from work(place)
        except (UnavailableError, ClosedError):
            raise
        except Exception as error:  # noqa: BLE001 - raised when it was done for the others
            if is_erased(error):
                passed += 1
                continue
            what = error if isinstance(error, TurnstoreError) else type(error).__name__
            log.warning("%s of %s failed: %s", operation, place.keys, what)
            failed.append((place, error))
    if failed:
        place, first = failed[0]
        told = (
            f"{operation} failed for {len(failed)} of {len(places)} owners, here {place.keys}, and "
            "is done for the others"
        )
        if isinstance(first, TurnstoreError):
            first.args = (f"{first}. {told}",)
        else:
            first.add_note(told)
        raise first
    return passed


def is_erased(error: Exception) -> bool:
    """Tell whether somebody is passed over, as all of the owner is erased, or being erased."""
    return isinstance(error, ErasedError) and error.reason in _ERASED
