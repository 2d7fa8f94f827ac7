"""The exam: questions whose wording, numbers or pair of hero and thing training never saw, and some that it did see.

"unseen wording": the fact was trained, this way of asking was not.  "unseen numbers", "unseen pair": this combination never occurred
in any training text.
"""

from . import everyday, product, smalltalk, stories, sums, unknown
from .mixture import plain_text

SIZES = {
    "capitals, unseen wording": 120, "countries, unseen wording": 120, "definitions, unseen wording": 150, "definitions, seen wording": 100,
    "sums, unseen numbers": 200, "sums, unseen numbers and wording": 150, "sums, seen numbers": 100, "everyday facts, unseen wording": 120,
    "product, unseen wording": 150, "product, seen wording": 100, "small talk, unseen wording": 60, "unknown, unseen questions": 30, "stories, unseen pairs": 60,
}  # fmt: skip


def build(mixture, rng, sizes=None):
    """Returns {section: [entry]}; an entry has question, answer, accept (right answers) and must (words a story has to contain)."""
    makers = _makers(mixture)
    return {name: _section(makers[name], rng, count) for name, count in (sizes or SIZES).items()}


def _makers(m):
    return {
        "capitals, unseen wording": lambda r: m.countries.exchange(r, unseen=True, only_capital=True),
        "countries, unseen wording": lambda r: m.countries.exchange(r, unseen=True),
        "definitions, unseen wording": lambda r: m.nouns.exchange(r, unseen=True),
        "definitions, seen wording": lambda r: m.nouns.exchange(r),
        "sums, unseen numbers": lambda r: sums.exchange(r, exam=True),
        "sums, unseen numbers and wording": lambda r: sums.exchange(r, unseen=True, exam=True),
        "sums, seen numbers": lambda r: sums.exchange(r),
        "everyday facts, unseen wording": lambda r: everyday.exchange(r, unseen=True),
        "product, unseen wording": lambda r: product.exchange(r, unseen=True),
        "product, seen wording": lambda r: product.exchange(r),
        "small talk, unseen wording": lambda r: smalltalk.exchange(r, unseen=True),
        "unknown, unseen questions": lambda r: unknown.exchange(r, r.choice(m.countries.all), unseen=True),
        "stories, unseen pairs": lambda r: stories.request(r, unseen=True, exam=True)[0],
    }


def _section(make, rng, count):
    """count entries; a question comes twice only where the source has too few different ones."""
    entries, seen = [], set()
    for attempt in range(20 * count):
        exchange = make(rng)
        if exchange.question in seen and attempt < 10 * count:
            continue
        seen.add(exchange.question)
        entries.append(_entry(exchange))
        if len(entries) == count:
            break
    return entries


def _entry(exchange):
    answers = exchange.accept or {exchange.answer}
    return {
        "question": plain_text(exchange.question), "answer": plain_text(exchange.answer),
        "accept": sorted(map(plain_text, answers)) if not exchange.must else [], "must": list(exchange.must),
    }  # fmt: skip


def grade(entry, text, finished):
    """Tells whether the answer is right.  A fact must equal an accepted answer; a story must be finished and contain the asked words."""
    text = text.strip()
    if entry["must"]:
        low = text.lower()
        return finished and all(word.lower() in low for word in entry["must"])
    return finished and text in entry["accept"]


def keeps_names(text):
    """Tells whether a story gets by with the two named figures that every trained story has."""
    return 1 <= len(stories.names_in(text)) <= 2
