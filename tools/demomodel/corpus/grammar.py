"""Turns a template into text.

A template holds choices, ``[one|two|three]`` (they nest, and an empty choice is allowed), and slots, ``{hero}`` or ``{hero.he}``.
A slot whose name begins with a capital letter starts a sentence: its text is capitalised.  All chance comes from the random
generator that the caller hands in, so the same seed gives the same text.
"""

import re

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)(?:\.(\w+))?\}")
_SILENT_H = ("honest", "honour", "hour", "heir")
_SOUNDS_LIKE_CONSONANT = ("uni", "use", "usa", "usu", "uran", "euro", "eu", "one", "once")


def expand(rng, template, **slots):
    """Returns the template with its choices made by rng and its slots filled."""
    return fill(choose(rng, template), **slots)


def choose(rng, template):
    """Makes all choices of a template, the innermost first, and leaves the slots alone."""
    while True:
        made, count = _CHOICE.subn(lambda m: rng.choice(m.group(1).split("|")), template)
        if count == 0:
            return _tidy(made)
        template = made


def fill(text, **slots):
    """Fills the slots of a text whose choices are made; an unknown slot is a KeyError, since a template is wrong then."""

    def value(match):
        name, attribute = match.groups()
        thing = slots[name[0].lower() + name[1:]]
        word = str(getattr(thing, attribute) if attribute else thing)
        return capital(word) if name[0].isupper() else word

    return _SLOT.sub(value, text)


def every(template):
    """Returns all texts that the choices of a template can give (slots stay).  For tests and for marking."""
    match = _CHOICE.search(template)
    if not match:
        return {_tidy(template)}
    out = set()
    for option in match.group(1).split("|"):
        out |= every(template[: match.start()] + option + template[match.end() :])
    return out


def capital(text):
    """The same text with a capital first letter."""
    return text[:1].upper() + text[1:]


def with_article(noun):
    """'a fox', 'an owl', 'an honest fox', 'a unit': by the first letter, with the exceptions that occur in the sources."""
    first = noun.lower()
    vowel = first[:1] in "aeiou" and not first.startswith(_SOUNDS_LIKE_CONSONANT)
    return ("an " if vowel or first.startswith(_SILENT_H) else "a ") + noun


def _tidy(text):
    """An empty choice leaves two spaces or a space before a mark: both go."""
    return re.sub(r" +([,.?!])", r"\1", re.sub(r"  +", " ", text)).strip()
