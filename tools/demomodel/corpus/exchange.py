"""One question with its answer, and lists of wordings of which some are kept for the exam."""

from dataclasses import dataclass, field

from .grammar import expand


@dataclass(frozen=True)
class Exchange:
    """A question as a person would write it and the answer that the model shall learn.

    accept holds every answer that counts as right in the exam; empty means that only answer does.
    must holds words that a free answer (a story) has to contain.
    """

    question: str
    answer: str
    accept: frozenset = field(default=frozenset())
    must: tuple = ()


@dataclass(frozen=True)
class Wordings:
    """Templates of one question: the trained ones and the unseen ones of the exam."""

    trained: tuple
    unseen: tuple

    def pick(self, rng, unseen, **slots):
        """Returns one wording with its slots filled."""
        return expand(rng, rng.choice(self.unseen if unseen else self.trained), **slots)
