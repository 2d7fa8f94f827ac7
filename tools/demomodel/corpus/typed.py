"""People do not type like a book: small letters, a missing question mark, a greeting in front."""

GREETINGS = ("Hi, ", "Hello, ", "Please, ", "OK, ", "Hey, ", "So, ")


def as_typed(rng, question):
    """Returns the question as somebody in a hurry might have typed it; most of the time unchanged."""
    if rng.random() < 0.05:
        question = rng.choice(GREETINGS) + _small_start(question)
    if rng.random() < 0.14:
        question = question.lower()
    elif rng.random() < 0.12:
        question = _small_start(question)
    if rng.random() < 0.12:
        question = question.rstrip("?.! ") or question
    return question


def plain(question):
    """The form in which two questions are compared: what as_typed changes does not count."""
    low = " ".join(question.lower().split()).rstrip("?.! ")
    for greeting in GREETINGS:
        if low.startswith(greeting.lower()):
            return low[len(greeting) :]
    return low


def _small_start(text):
    """A small first letter, but 'I' and words in capitals (HECATE) stay."""
    first = text.split(" ", 1)[0]
    if first.rstrip("?.!,'") in ("I", "I'm", "I'd") or first[1:2].isupper():
        return text
    return text[:1].lower() + text[1:]
