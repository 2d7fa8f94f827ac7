"""Common nouns with their first sense, from WordNet 3.0 (Debian's wordnet-base).  WordNet's notice must travel with the model."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .exchange import Exchange, Wordings
from .grammar import capital, with_article

HOW_MANY = 1400
# WordNet's lexicographer files that hold concrete things come first: file number and weight.
FILES = {"04": 0.7, "05": 3, "06": 3, "08": 2, "09": 0.6, "10": 0.6, "11": 0.8, "12": 1.2, "13": 3, "14": 0.7, "15": 1, "17": 2, "18": 1.5, "19": 1.2, "20": 3, "21": 0.7, "23": 0.5, "27": 1.5, "28": 1.2}
COUNTED = ("05", "06", "08", "14", "15", "17", "18", "20", "23")  # "a dog", but not "a water"
# Words with a meaning of their own in this product, and words that the stories use for people.
RESERVED = frozenset("api copy endpoint failover fragment gateway generation hop ice layer machine model node one pipeline plan pool replica route stage story swarm token two writer".split())
# A demo for everybody: glosses that touch these are left out.
UNFIT = re.compile(
    r"sex|rac(e|ial)|kill|murder|execut|tortur|suicid|weapon|gun\b|bomb|war\b|drug|narcot|cocain|heroin|opium|alcohol|liquor|whisk|nazi|slav|negro|jew|christ|musl|god|devil|demon|satan|hell\b|prostitut|rape|breast"
    r"|genital|vagin|penis|anus|butt|excre|feces|urin|vomit|corpse|dead|death|die\b|blood|naked|nude|idiot|stupid|ugly|fat\b|offensi|derog|obscen|vulgar|slang|disparag|coloni|crim|terror|intercourse|homosex|lesb|bastard|insane|cripple|primitive|savage|indian|gamete|freak|deform|retard|inferior|shoot|firearm|projectile|bullet|ammuni|poison"
)
_OPENS_A_GLOSS = frozenset("a an the any all each either every one two someone somebody something anything whatever that what".split())


@dataclass(frozen=True)
class Noun:
    word: str
    gloss: str
    counted: bool

    @property
    def definition(self):
        subject, gloss = self.word, self.gloss
        if self.counted:
            subject = with_article(self.word)
            gloss = gloss if gloss.split()[0] in _OPENS_A_GLOSS else with_article(gloss)  # "a buckle is fastener": WordNet is terse
        return capital(f"{subject} is {gloss}.")


def load(folder, how_many=HOW_MANY):
    """Reads WordNet's files (data.noun, index.noun, cntlist.rev) and returns the most useful nouns, sorted by word."""
    folder = Path(folder)
    counts, senses, ranked = _tag_counts(folder), _senses(folder), []
    for line in (folder / "index.noun").read_text(encoding="latin-1").splitlines():
        word, _, rest = line.partition(" ")
        if not re.fullmatch("[a-z]{3,11}", word) or counts[word] < 2 or word in RESERVED or UNFIT.search(word) or re.search("[^s]s$", word):
            continue
        file, proper, gloss = senses[_first_sense(rest)]
        short = _short(word, gloss)
        if short and file in FILES and not proper:
            ranked.append((FILES[file] * min(counts[word], 40) ** 0.5, Noun(word, short, file in COUNTED)))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].word))
    return tuple(sorted((noun for _, noun in ranked[:how_many]), key=lambda noun: noun.word))


def _tag_counts(folder):
    """How often each noun was seen in WordNet's tagged texts, summed over its senses."""
    counts = Counter()
    for line in (folder / "cntlist.rev").read_text(encoding="latin-1").splitlines():
        key, _, count = line.split()
        word, _, sense = key.partition("%")
        if sense.startswith("1:"):  # 1: nouns
            counts[word] += int(count)
    return counts


def _senses(folder):
    """Offset in data.noun -> (lexicographer file, whether it is a proper name, gloss)."""
    out = {}
    for line in (folder / "data.noun").read_text(encoding="latin-1").splitlines():
        if line[:1] != " ":
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            out[fields[0]] = (fields[1], " @i " in head, gloss.strip())
    return out


def _first_sense(index_fields):
    """The offset of the first sense: the line ends with as many offsets as the word has senses (the second field)."""
    fields = index_fields.split()
    return fields[-int(fields[1])]


def _short(word, gloss):
    """The gloss without examples, remarks and second thoughts, or None where too little or too much is left."""
    text = re.sub(r"\(.*?\) ?", "", re.split(r'; "|;', gloss)[0]).strip()
    odd = re.search(r"[A-Z0-9`':\"]|\betc\b|informal", text) or re.search(rf"\b{word}", text) or UNFIT.search(text)
    return None if odd or not 3 <= len(text.split()) <= 11 else text


DEFINE = Wordings(
    trained=(
        "What is {a_noun}?", "What's {a_noun}?", "What does the word {noun} mean?", "What does {noun} mean?", "Define {noun}.", "What is the meaning of {noun}?",
        "Explain the word {noun}.", "Tell me what {a_noun} is.", "Can you explain what {a_noun} is?", "What is meant by {noun}?", "{Noun}?",
        "Give me a definition of {noun}.", "Do you know what {a_noun} is?", "Can you define {noun}?", "What do you know about {noun}?",
    ),
    unseen=("Please explain {noun}.", "How would you define {noun}?", "I do not know the word {noun}. What is it?"),
)  # fmt: skip


class Nouns:
    """Asks what a word means."""

    def __init__(self, folder, how_many=HOW_MANY):
        self.all = load(folder, how_many)

    def exchange(self, rng, unseen=False):
        noun = rng.choice(self.all)
        a_noun = with_article(noun.word) if noun.counted else noun.word
        return Exchange(DEFINE.pick(rng, unseen, noun=noun.word, a_noun=a_noun), noun.definition)
