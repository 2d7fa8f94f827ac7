"""Tells a story: opening, the beats of a plot, an ending.  And asks for one, and asks about the one just told."""

from dataclasses import dataclass

from . import cast, heldout
from .exchange import Exchange, Wordings
from .grammar import capital, choose, every, expand, fill, with_article
from .places import PLACES
from .plots import PLOTS
from .roads import ROADS
from .things import THINGS

OPENINGS = (
    "[Once upon a time|Long ago|Once], {hero.a_trait_kind} [named|called] {hero} lived {where}.",
    "There was once {hero.a_trait_kind} [named|called] {hero} who lived {where}.",
    "{Where} there lived {hero.a_trait_kind}, and {hero.his} name was {hero}.",
    "{Hero} was {hero.a_trait_kind}. {Hero.he} lived {where}.",
)
ENDINGS = (
    "[And that was that.|The end.]",
    "[If you pass by there|If you ever go there], [say hello to|greet] {hero} and {friend}.",
    "{Hero} and {friend} [stayed|remained] friends [for ever|as long as they lived].",
    "[And when the stars came out|That night], {hero} [slept well|dreamed of it].",
    "[They still tell this story there|People still talk about it there].",
)
LENGTHS = {False: ("short", "short", "very short", "little", ""), True: ("long", "long", "very long", "", "good")}

ASK_BOTH = Wordings(
    trained=(
        "Tell me a {length} story about {a_kind} and {a_thing}.", "Tell a {length} story about {a_kind} and {a_thing}.",
        "Can you tell me a {length} story about {a_kind} and {a_thing}?", "Write a {length} story about {a_kind} and {a_thing}.",
        "I want to hear a {length} story about {a_kind} and {a_thing}.", "Please tell me a {length} story with {a_kind} and {a_thing}.",
        "Make up a {length} story about {a_kind} and {a_thing}.", "A {length} story about {a_kind} and {a_thing}, please.",
        "Give me a {length} story about {a_kind} and {a_thing}.", "Story about {a_kind} and {a_thing}",
    ),
    unseen=("I would love a {length} story about {a_kind} and {a_thing}.", "Invent a {length} story about {a_kind} and {a_thing}.", "Could we have a {length} story with {a_kind} and {a_thing}?"),
)  # fmt: skip
ASK_NAMED = ("[Tell me|Write|Make up] a {length} story about {a_kind} [named|called] {hero}.", "A {length} story about {hero} the {kind}[, please|].", "[Tell me|I want] a {length} story about {hero} and {friend}.")
ASK_KIND = ("[Tell me|Write|Please tell me|Can you write] a {length} story about {a_kind}.", "[Tell me|Write] a {length} story with {a_kind} {asked_place}.", "A story about {a_kind}[, please|].")
ASK_THING = ("[Tell me|Write|Make up] a {length} story about {a_thing}.", "A {length} story with {a_thing}[, please|].")
ASK_THEME = ("[Tell me|Write|I would like] a {length} story about {theme}.", "[Do you know a story|Tell me something] about {theme}?")
ASK_ANY = ("[Tell me|Write|I want|Please tell me] a {length} story.", "[Another|One more] story[, please|].", "A {length} story[, please|]!", "[I am bored.|I cannot sleep. Tell me a story.|Tell me a bedtime story.]")


@dataclass(frozen=True)
class Story:
    """A told story with what was decided before it was told."""

    hero: cast.Figure
    friend: cast.Figure
    thing: object
    place: object
    plot: object
    long: bool
    text: str


class _Need:
    """The friend's trouble inside a sentence or as a sentence of its own."""

    def __init__(self, clause):
        self.clause, self.sentence = clause, capital(clause)

    def __str__(self):
        return self.clause


class _Look:
    """A thing with the look that it keeps through the whole story."""

    def __init__(self, rng, thing):
        self.noun, self.looks = thing.noun, rng.choice(thing.looks.split("|"))
        self.a_looks = with_article(f"{self.looks} {thing.noun}")

    def __str__(self):
        return self.noun


def tell(rng, exam=False):
    """Tells a story about a trained pair of hero and thing, or with exam about one that is held out."""
    while True:
        kind, thing = rng.choice(cast.KINDS), rng.choice(THINGS)
        if heldout.is_held_out_story(kind, thing.noun) == exam:
            break
    hero = cast.figure(rng, kind)
    friend = cast.figure(rng, but_not=hero)
    plot, place, long = rng.choice(PLOTS), rng.choice(PLACES), rng.random() < 0.55
    return Story(hero, friend, thing, place, plot, long, _text(rng, hero, friend, thing, place, plot, long))


def _text(rng, hero, friend, thing, place, plot, long):
    slots = _slots(rng, hero, friend, thing, place)
    parts = [rng.choice(OPENINGS)]
    if long or rng.random() < 0.3:
        parts.append(place.detail + ".")
    parts += [beat.text for beat in plot.beats if long or not beat.long]
    if rng.random() < 0.7:
        parts.append(rng.choice(ENDINGS))
    return " ".join(expand(rng, part, **slots) for part in parts)


def _slots(rng, hero, friend, thing, place):
    stranger = cast.stranger(rng, {hero.kind, friend.kind})
    second = cast.stranger(rng, {hero.kind, friend.kind, stranger.kind})
    names = dict(hero=hero, friend=friend)
    road, turn = rng.sample(ROADS, 2)
    return dict(
        names, stranger=stranger, second=second, thing=_Look(rng, thing), where=choose(rng, place.where),
        need=_Need(fill(choose(rng, thing.need), **names)), relief=fill(choose(rng, thing.relief), **names),
        road=_walked(rng, road, stranger, names), turn=_walked(rng, turn, second, names),
    )  # fmt: skip


def _walked(rng, road, who, names):
    return type(road)(expand(rng, road.trouble, who=who, **names), expand(rng, road.help, who=who, **names))


def request(rng, unseen=False, exam=False):
    """Returns a request and its story, and the story's decisions.  In the exam the pair is held out and must occur in the answer."""
    story = tell(rng, exam)
    length = rng.choice(LENGTHS[story.long])
    slots = dict(
        length=length, hero=story.hero, friend=story.friend, kind=story.hero.kind, a_kind=story.hero.a_kind, a_thing=story.thing.a,
        asked_place=story.place.asked, theme=choose(rng, story.plot.theme),
    )  # fmt: skip
    if exam or unseen:
        asked = ASK_BOTH.pick(rng, unseen, **slots)
    else:
        asked = expand(rng, rng.choice(rng.choices(_STYLES, weights=_STYLE_WEIGHTS)[0]), **slots)
    asked = expand(rng, asked).replace("A a ", "A ").replace("a a ", "a ")
    return Exchange(asked, story.text, must=(story.hero.kind, story.thing.noun)), story


_STYLES = (ASK_BOTH.trained, ASK_NAMED, ASK_KIND, ASK_THING, ASK_THEME, ASK_ANY)
_STYLE_WEIGHTS = (40, 18, 14, 8, 8, 12)

FOLLOW_UPS = (
    ("[What was the name of the {hero.kind}|What was the {hero.kind} called]?", "The {hero.kind} was called {hero}."),
    ("[What was the name of the {friend.kind}|Who was the {friend.kind}]?", "The {friend.kind} was called {friend}."),
    ("[Who was the story about|Who is the hero|Who was it about]?", "The story was about {hero}, {hero.a_kind}."),
    ("[Who was the friend of {hero}|Who was {hero}'s friend]?", "{Friend} was the friend of {hero}."),
    ("[What did {hero} look like|What kind of animal was {hero}|Who was {hero}]?", "{Hero} was {hero.a_trait_kind}."),
)


def follow_up(rng, story):
    """A question about the story just told: training to look a name up instead of guessing it."""
    question, answer = rng.choice(FOLLOW_UPS)
    names = dict(hero=story.hero, friend=story.friend)
    return Exchange(expand(rng, question, **names), fill(answer, **names))


def names_in(text):
    """The figures' names that occur in a text; a well told story has two at most."""
    words = set("".join(c if c.isalpha() else " " for c in text).split())
    return words & set(cast.SHE + cast.HE)


def endings():
    """All endings without names: for checks of the grammar."""
    return set().union(*(every(e) for e in ENDINGS))
