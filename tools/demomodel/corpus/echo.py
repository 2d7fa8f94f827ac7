"""Copying on demand: the skill behind kept names and right numbers.

Saying words back teaches the attention heads that look a token up again ("the Mia of this story", "the 49 of this question"),
and it costs few tokens.
"""

from . import cast
from .exchange import Exchange
from .grammar import expand
from .things import THINGS

_ASK = ("[Say|Repeat|Please repeat|Write]: {words}", "[Say|Repeat] {words}.", "Repeat after me: {words}")
_BACKWARDS = ("[Say|Write] {words} backwards.", "{words} in reverse[, please|]")
_FIRST = ("Which is the [first|1st] of {words}?",)
_LAST = ("Which is the last of {words}?",)


def exchange(rng):
    """Asks for words, names or numbers to be said back, as they are or backwards, or for one end of them."""
    words = [_word(rng) for _ in range(rng.randrange(2, 6))]
    listed = ", ".join(words)
    templates, answer = rng.choice(((_ASK, listed), (_ASK, listed), (_BACKWARDS, ", ".join(reversed(words))), (_FIRST, words[0]), (_LAST, words[-1])))
    return Exchange(expand(rng, rng.choice(templates), words=listed), answer + ".")


def row(rng):
    """A raw text: the same short list of names and numbers, several times in a row."""
    words = [_word(rng) for _ in range(rng.randrange(3, 7))]
    return "\n".join([", ".join(words)] * rng.randrange(3, 6))


def _word(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return str(rng.randrange(100))
    if kind == 1:
        return rng.choice(THINGS).noun
    return rng.choice(cast.SHE + cast.HE)
