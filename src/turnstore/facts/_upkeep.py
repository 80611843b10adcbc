"""The upkeep of facts on a sync store: forgetting, erasing, keeping few, moving, looking after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from turnstore.results import Erasure, Turn

from ._model import Health
from ._scoring.ranking import Decay
from ._storing import forgetting, health, removing
from ._storing.base import Base
from ._storing.migration import Migration, migrate
from ._storing.retention import Retention, Rule, retain

if TYPE_CHECKING:
    from turnstore._holding import Runner
    from turnstore._place import Home

__all__ = ["Upkeep"]


class Upkeep:
    """What `Facts` does beside storing and finding."""

    _base: Base
    _home: Home
    _run: Runner

    @property
    def engine(self) -> str:
        """The name of the engine; "auto" until the server was asked which it has."""
        return self._base.engine.name if self._base.engine else "auto"

    @property
    def counts(self) -> Counter[str]:
        """What went wrong without an error, by name: `indexing`, `indexing_failures`, `touch`."""
        return self._base.counts

    def forget(
        self,
        owner: str,
        id: str,  # noqa: A002 - the name of the field
        *,
        verify: bool = False,
    ) -> Erasure:
        """Remove a fact of an owner, with its vector and its words.

        Also one that cannot be read: then all that has its id goes with it. The turns that said
        it stay, and what is drawn from them later is another fact.

        Args:
            owner: Whose it is.
            id: Of the fact.
            verify: Look for it afterwards in every space, every index and at every key of the
                server, until neither text nor words, vector or times of it are found.

        Returns:
            The receipt, which is true where the owner had such a fact: its `parts` count it as
            one of `facts` or of `exchanges`, and with `verify` also `vectors` that it had left.
            Its id may still be named by the log of extractions and by facts that it superseded.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was removed.
            FormatError: A later version has written it, or with `verify`, facts of the store are
                where only a later version finds them; it was left as it is.
            CorruptTurnError: A part of the owner's facts is lost, as by eviction, so that something
                of it may be left; `store.erase` removes all.
            ErasedError, ServerError: As for `add`.

        Cost:
            Three round trips. Of a fact that cannot be read, all words of the owner are looked
            through. With `verify` two more, of which one looks through these words too, one
            for each 1,000 keys of the server, and one for each space of a search index.

        Example:
            >>> id = facts.add("ada", "Ada likes tea.").id
            >>> receipt = facts.forget("ada", id, verify=True)
            >>> receipt.parts, receipt.verified
            ({'facts': 1}, True)
            >>> bool(facts.forget("ada", id))
            False
        """
        return self._run(removing.forget(self._base, owner, id, verify=verify))

    def forget_conversation(self, owner: str, conversation: str) -> int:
        """Remove the facts that were drawn from a conversation of an owner.

        What is being drawn from it just now is refused. Turns that stay in the conversation
        and were not read yet can be drawn from later: clear it too, to have nothing left.

        Args:
            owner: Whose they are.
            conversation: The id of the conversation.

        Returns:
            Facts removed.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was removed.
            ErasedError: Everything of the owner is being erased just now.
            CorruptTurnError: A part of the owner's facts is lost, as by eviction, so that some
                may be left; `store.erase` removes all.
            ServerError: Redis failed; some may be removed. Do it again.

        Cost:
            Reads all facts of the owner, 500 at a time, and removes a hundred at a time: five
            round trips for few.

        Example:
            >>> facts.add("ada", "Ada likes tea.", conversation="conv-1").duplicate
            False
            >>> facts.forget_conversation("ada", "conv-1")
            1
        """
        return self._run(forgetting.forget_conversation(self._base, owner, conversation))

    def forget_turns(self, owner: str, conversation: str, turns: Iterable[Turn | str]) -> int:
        """Remove what only these turns of a conversation say: exchanges, and facts.

        For turns that were undone: what they said is not recalled any more. A fact that other
        turns say too only loses these sources; a pinned one stays as it is, and so does a fact
        without sources. An exchange of these turns that waits to be stored is refused. Turns are
        known by their ids, and a fact by the newest 64 of them: what a fork says too, whose turns
        have the same ids, goes.

        A fact that these turns have ended stays ended until the next extraction of the
        conversation, which undoes all that it drew from turns that are gone. Turns that stay in
        the conversation can be drawn from again: `rewind` first, or replace them.

        Args:
            owner: Whose they are.
            conversation: The id of the conversation.
            turns: The turns, as `rewind` gives them back, or their ids, with those of all their
                pieces, as `Turn.ids` and `turn.saved.replaced_ids` have them. Keep them until it is
                done: after an error this alone is done again, as another `rewind` would undo
                another turn.

        Returns:
            Facts and exchanges removed.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was removed.
            ErasedError: Everything of the owner is being erased just now.
            CorruptTurnError: As for `forget_conversation`.
            ServerError: Redis failed; some may be removed. Do it again.

        Atomicity:
            A hundred facts at a time. What is heard of one from other turns meanwhile counts.

        Cost:
            Reads all facts of the owner, 500 at a time, and changes a hundred at a time: five
            round trips for few, and none where there are no turns.

        Example:
            >>> chat = store.conversation("conv-1", owner="ada")
            >>> chat.append("I like tea.", turn_id="t1").duplicate
            False
            >>> facts.add_exchange("ada", "conv-1", "t1", "User: I like tea.").duplicate
            False
            >>> undone = chat.rewind()
            >>> facts.forget_turns("ada", "conv-1", undone)
            1
        """
        return self._run(forgetting.forget_turns(self._base, owner, conversation, turns))

    def erase(self, owner: str, *, verify: bool = False) -> Erasure:
        """Delete everything of an owner, for good: facts and conversations.

        It is `store.erase`. What began before it does not come back: a fact that is being
        stored, an exchange, or what a model is just drawing from a conversation is refused.

        Args:
            owner: The id of the owner.
            verify: Look at every key of the server too, so that also what no list knows any
                more is found, deleted, and shown to be gone.

        Returns:
            What was removed; `parts["facts"]` are the facts.

        Raises:
            TypeError, ValueError: It is no owner's id; nothing was sent.
            UnavailableError: No answer, or the server was too busy; a part may be deleted.
            ServerError: Redis refused; a part may be deleted. Do it again.

        Atomicity:
            From the first step to the last nobody writes for the owner.

        Cost:
            Seven round trips, and one more for each 5,000 facts, each 50 documents of a search
            index, and each 100 conversations. Keys are unlinked, so that no large one holds up
            the server.

        Example:
            >>> facts.add("ada", "Ada likes tea.").duplicate
            False
            >>> facts.erase("ada").parts["facts"]
            1
            >>> facts.list("ada")
            []
        """
        return self._run(self._home.erase(owner, verify=verify))

    def retain(  # noqa: PLR0913 - what a rule is made of, by name
        self,
        owner: str | None = None,
        *,
        closed_for: timedelta | None = None,
        older_than: timedelta | None = None,
        unused_for: timedelta | None = None,
        fresh: float | None = None,
        most: int | None = None,
        decay: Decay | None = None,
        dry_run: bool = False,
    ) -> Retention:
        """Remove facts that are not to be kept any longer; pinned ones stay.

        Args:
            owner: Whose facts; None is everybody's.
            closed_for: Facts that are not true any more go so long after their end, or after it
                became known; None keeps them.
            older_than: Facts go that were stored so long ago; None keeps them.
            unused_for: Facts go that were neither stored, nor heard, nor found for so long;
                None keeps them.
            fresh: Facts go whose freshness by `decay` is less, from 0 to 1; None keeps them.
            most: Of each owner so many are kept, the freshest; None keeps all.
            decay: Says how fresh a fact is; None is that of the ranking, or `Decay()`.
            dry_run: Whether it is only counted.

        Returns:
            How many facts were looked at and removed, by reason.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was sent.
            CorruptTurnError, FormatError: What is stored of an owner cannot be read.
            ErasedError: Everything of the owner is being erased just now. For everybody, such
                an owner is passed over.
            ServerError: Redis failed; some may be removed. Do it again.
            UnavailableError: The same; for everybody, owners after it are not tidied.

        Atomicity:
            A hundred facts at a time. One that is changed meanwhile stays. For everybody, what
            fails for one owner keeps it from no other: the first error is raised when it is done
            for all others, and the log has each.

        Cost:
            Reads all facts of the owners, 500 at a time. For everybody it looks at every key
            of the server.

        Example:
            >>> facts.add("ada", "Ada likes tea.").duplicate
            False
            >>> facts.retain("ada", most=100, dry_run=True).removed
            {}
        """
        rule = Rule(
            closed_for=closed_for,
            older_than=older_than,
            unused_for=unused_for,
            fresh=fresh,
            most=most,
            decay=decay or self._base.settings.ranking.decay or Decay(),
        )
        return self._run(retain(self._base.ground, owner, rule, dry_run=bool(dry_run)))

    def migrate(self, *, drop: bool = False, dry_run: bool = False) -> Migration:
        """Move the facts of all owners to this embedder and this engine.

        Each owner is searched as before until all of the owner's facts have a new vector and
        the counts agree; then the new ones are searched. Texts are embedded anew only where
        the embedder is another one. A migration that was broken off goes on where it stopped.

        Other processes need an embedder for owners who are moved and for those who are not
        yet: give `Facts` the earlier one as `previous`, and migrate when all have it.

        Args:
            drop: Whether the vectors that the facts had before are dropped, with the index;
                otherwise they stay, so that one can go back.
            dry_run: Whether it is only counted.

        Returns:
            How much was moved.

        Raises:
            ServerError: Redis failed, the counts do not agree, or an owner's facts are changed
                all the time. Do it again.
            CorruptTurnError, FormatError: What is stored of an owner cannot be read.
            TypeError, ValueError: The embedder answered what is no vector.
            UnavailableError: Redis cannot be reached; owners after it are not moved.

        Atomicity:
            Each owner is moved in one step. What fails for one owner keeps no other from being
            moved: the first error is raised when the others are, and the log has each; new
            processes are not told of the new space then. An owner who is being erased is passed
            over, and then no index is dropped.

        Cost:
            Looks at every key of the server, and reads all facts that are to be moved, a
            hundred at a time.

        Example:
            >>> facts.migrate(dry_run=True).facts
            0
        """
        return self._run(migrate(self._base, drop=bool(drop), dry_run=bool(dry_run)))

    def health(self, owner: str | None = None) -> Health:
        """Say how the facts of an owner, or of all of them, are.

        Args:
            owner: Whose facts; None is everybody's.

        Returns:
            What is stored, and whether all of it can be found. No fact is read for it: one that
            is damaged, which makes each search of its owner a `CorruptTurnError`, does not
            show. `retain(dry_run=True)` reads all, and names it.

        Raises:
            TypeError, ValueError: It is no owner's id; nothing was sent.
            ServerError: Redis failed.

        Cost:
            Two round trips for each owner, one more for each 500 conversations that were read
            for facts, and one for an index; on a Cluster one for each command. For everybody it
            looks at every key of the server.

        Example:
            >>> facts.health().is_well
            True
        """
        return self._run(health.health(self._base, owner))
