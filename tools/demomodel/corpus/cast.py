"""Who appears in the stories.

Only two figures of a story have a name, the hero and a friend; everybody else is "the owl" or "the old miller".  The list of names
is short on purpose: a small model copies a name reliably only when it has seen each one many times.
"""

from dataclasses import dataclass

from .grammar import with_article

SHE = ("Anna", "Clara", "Dora", "Ella", "Flora", "Greta", "Holly", "Iris", "Lina", "Mira", "Nell", "Rosa")
HE = ("Arno", "Bert", "Colin", "Emil", "Finn", "Hugo", "Jasper", "Leo", "Milo", "Otis", "Theo", "Victor")

ANIMALS = (
    "badger", "bear", "beaver", "cat", "crow", "deer", "dog", "donkey", "duck", "fox", "frog", "goat", "goose", "hare", "hedgehog",
    "mole", "mouse", "otter", "owl", "pony", "rabbit", "robin", "squirrel", "turtle",
)  # fmt: skip
PEOPLE = ("baker", "boy", "carpenter", "gardener", "girl", "miller", "painter", "postman", "sailor", "shepherd", "tailor", "teacher")
KINDS = ANIMALS + PEOPLE

TRAITS = ("brave", "careful", "cheerful", "clever", "curious", "gentle", "honest", "kind", "patient", "quiet", "small", "young")
STRANGER_TRAITS = ("grey", "little", "old", "sleepy", "friendly", "thin", "round", "tall")


@dataclass(frozen=True)
class Figure:
    """A figure with a name.  The attributes are what templates need, as in {hero.he}."""

    name: str
    kind: str
    trait: str
    female: bool

    def __str__(self):
        return self.name

    @property
    def he(self):
        return "she" if self.female else "he"

    @property
    def him(self):
        return "her" if self.female else "him"

    @property
    def his(self):
        return "her" if self.female else "his"

    @property
    def a_kind(self):
        return with_article(self.kind)

    @property
    def a_trait_kind(self):
        return with_article(f"{self.trait} {self.kind}")

    @property
    def the_kind(self):
        return "the " + self.kind


@dataclass(frozen=True)
class Stranger:
    """A figure without a name."""

    kind: str
    trait: str

    def __str__(self):
        return "the " + self.kind

    @property
    def a_trait_kind(self):
        return with_article(f"{self.trait} {self.kind}")


def figure(rng, kind=None, but_not=None):
    """A new named figure; its name's first letter and its kind differ from those of but_not, so that nothing can be mixed up."""
    while True:
        chosen = kind or rng.choice(KINDS)
        female = {"girl": True, "boy": False}.get(chosen, rng.random() < 0.5)
        made = Figure(rng.choice(SHE if female else HE), chosen, rng.choice(TRAITS), female)
        if but_not is None or (made.name[0] != but_not.name[0] and made.kind != but_not.kind and made.trait != but_not.trait):
            return made


def stranger(rng, taken):
    """Somebody without a name whose kind is none of the taken ones."""
    free = [kind for kind in ANIMALS if kind not in taken]
    return Stranger(rng.choice(free), rng.choice(STRANGER_TRAITS))
