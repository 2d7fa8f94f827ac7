"""Mixes all sources into documents: conversations in ChatML, and raw texts."""

import unicodedata

from . import echo, everyday, product, smalltalk, stories, sums, unknown
from .countries import Countries
from .exchange import Exchange
from .nouns import Nouns
from .typed import as_typed

SYSTEM_PROMPTS = ("You are a helpful assistant.", "You are HECATE's demo model.", "You are a friendly assistant.", "Answer briefly.", "You are a kind storyteller.", "You answer in plain English.")
# Out of a hundred documents and out of a hundred questions.  Facts need many repetitions, stories many tokens.
DOCUMENTS = {"story": 24, "questions": 58, "raw story": 4, "drill": 6, "echo": 2, "glosses": 3, "geography": 2, "product": 1}
QUESTIONS = {"noun": 31, "sum": 22, "country": 17, "everyday": 8, "small talk": 5, "product": 11, "unknown": 4, "echo": 2}


def turn(role, text):
    """One ChatML turn."""
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def plain_text(text):
    """Letters without accents: the vocabulary is too small to know more than ASCII well."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


class Mixture:
    """All sources at hand.  document and question take all chance from the generator that is passed in."""

    def __init__(self, factbook, wordnet):
        self.countries = Countries(factbook)
        self.nouns = Nouns(wordnet)

    def document(self, rng):
        """One document for training: its kind and its text."""
        kind = _draw(rng, DOCUMENTS)
        make = {"story": self._story_talk, "questions": self._question_talk}.get(kind)
        return kind, plain_text(_chat(rng, make(rng)) if make else self._raw(rng, kind))

    def question(self, rng):
        """One question of any kind, in trained wordings and about trained pairs."""
        kind = _draw(rng, QUESTIONS)
        if kind == "unknown":
            return unknown.exchange(rng, rng.choice(self.countries.all))
        source = {
            "noun": self.nouns.exchange, "sum": sums.exchange, "country": self.countries.exchange, "everyday": everyday.exchange,
            "small talk": smalltalk.exchange, "product": product.exchange, "echo": echo.exchange,
        }[kind]  # fmt: skip
        return source(rng)

    def _question_talk(self, rng):
        talk = [smalltalk.exchange(rng, topic="greeting")] if rng.random() < 0.15 else []
        for _ in range(rng.choice((1, 1, 2, 3, 4, 5, 6))):
            talk.append(self.question(rng))
            if talk[-1].answer.startswith("The capital of") and rng.random() < 0.3:
                talk.append(self.countries.another(rng))
        if rng.random() < 0.1:
            talk.append(smalltalk.exchange(rng, topic="goodbye"))
        return talk

    def _story_talk(self, rng):
        talk = [smalltalk.exchange(rng, topic="greeting")] if rng.random() < 0.15 else []
        if rng.random() < 0.12:
            talk.append(self.question(rng))
        asked, story = stories.request(rng)
        talk.append(asked)
        for _ in range(rng.choice((0, 0, 1, 2))):
            talk.append(stories.follow_up(rng, story))
        if rng.random() < 0.12:
            talk.append(smalltalk.exchange(rng, topic=rng.choice(("thanks", "good"))))
        return talk

    def _raw(self, rng, kind):
        if kind == "raw story":
            return stories.tell(rng).text
        if kind == "drill":
            return sums.drill(rng)
        if kind == "echo":
            return echo.row(rng)
        source = {"glosses": self.nouns.exchange, "geography": self.countries.exchange, "product": product.exchange}[kind]
        return "\n".join(source(rng).answer for _ in range(rng.randrange(5, 12)))


def _chat(rng, talk: list[Exchange]):
    """The ChatML text of a conversation, typed as people type."""
    system = turn("system", rng.choice(SYSTEM_PROMPTS)) if rng.random() < 0.15 else ""
    return system + "".join(turn("user", as_typed(rng, e.question)) + turn("assistant", e.answer) for e in talk)


def _draw(rng, weights):
    return rng.choices(tuple(weights), weights=tuple(weights.values()))[0]
