"""Questions about HECATE.

A topic is either a term ("failover"), asked for with the frames that all terms share, or a task ("add a machine"), asked for with
its own phrases in the frames of tasks; any topic may add whole questions of its own.  Frames times phrases gives each topic dozens
of wordings, which is what the earlier model lacked.  Unseen: some frames (with every term), and the unseen questions of each topic.
"""

from .exchange import Exchange
from .grammar import choose
from .product_topics import TOPICS

TERM_FRAMES = (
    "What is {it}?", "What's {it}?", "Explain {it}.", "What does {bare} mean?", "Tell me what {it} is.", "Define {bare}.", "What is {it} in HECATE?", "What does {bare} mean in HECATE?",
    "Can you explain {it}?", "Tell me about {it}.", "What do you call {it}?", "Can you tell me what {it} is?", "I do not understand {it}.", "Describe {it}.", "{Bare}?", "In HECATE, what is {it}?",
    "Explain to me what {it} is.", "What is meant by {it}?", "Please explain {it}.",
)  # fmt: skip
TERM_FRAMES_UNSEEN = ("What do you mean by {it}?", "Could you say what {it} is?", "Please tell me what {it} is.")
TASK_FRAMES = (
    "How do I {it}?", "How can I {it}?", "How to {it}?", "What do I type to {it}?", "What is the command to {it}?", "I want to {it}.", "Can I {it}?", "How does one {it}?", "Tell me how to {it}.",
    "Show me how to {it}.", "What must I do to {it}?", "Please help me to {it}.", "Is there a command to {it}?", "Explain how to {it}.",
)  # fmt: skip
TASK_FRAMES_UNSEEN = ("Which command do I need to {it}?", "I would like to {it}. What do I type?", "What is the way to {it}?")


def exchange(rng, unseen=False, topic=None):
    """One question about HECATE; topic names one of TOPICS, None means any."""
    chosen = next(t for t in TOPICS if t.name == topic) if topic else rng.choice(TOPICS)
    return Exchange(_question(rng, chosen, unseen), chosen.answer)


def _question(rng, topic, unseen):
    framed = _framed(topic, unseen)
    own = topic.unseen if unseen else topic.questions
    share = len(framed) / (len(framed) + 3 * len(own))  # a question of its own weighs as much as three frames
    return choose(rng, rng.choice(framed) if rng.random() < share else rng.choice(own))


def _framed(topic, unseen):
    """The topic's phrases in all frames of its sort."""
    out = []
    for phrase in topic.terms:
        for frame in TERM_FRAMES_UNSEEN if unseen else TERM_FRAMES:
            bare = phrase.removeprefix("a ").removeprefix("an ").removeprefix("the ")
            out.append(frame.replace("{it}", phrase).replace("{bare}", bare).replace("{Bare}", bare[:1].upper() + bare[1:]))
    for phrase in topic.tasks:
        out += [frame.replace("{it}", phrase) for frame in (TASK_FRAMES_UNSEEN if unseen else TASK_FRAMES)]
    return out


def wordings(topic, unseen):
    """Every template of a topic's questions: for the tests."""
    return _framed(topic, unseen) + list(topic.unseen if unseen else topic.questions)
