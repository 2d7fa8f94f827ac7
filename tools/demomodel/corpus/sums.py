"""Sums and differences of the numbers 0 to 99, and the drills that make them exact.

The earlier model's errors were mostly wrong copies of a number, seldom wrong arithmetic.  So besides the questions there are drills
that train both halves apart: columns with the working written out, and plain rows.
"""

from . import heldout
from .exchange import Exchange, Wordings

SUM = Wordings(
    trained=(
        "What is {a} + {b}?", "What's {a} + {b}?", "{a} + {b}", "{a} + {b} =", "{a}+{b}", "How much is {a} + {b}?", "What is {a} plus {b}?", "How much is {a} plus {b}?",
        "Calculate {a} + {b}.", "Add {a} and {b}.", "{a} plus {b}?", "What is the sum of {a} and {b}?", "What do {a} and {b} make?", "Can you add {a} and {b}?", "Add {b} to {a}.",
    ),
    unseen=("Please add {a} and {b}.", "Can you tell me {a} + {b}?", "Compute {a} plus {b}."),
)  # fmt: skip
DIFFERENCE = Wordings(
    trained=(
        "What is {a} - {b}?", "What's {a} - {b}?", "{a} - {b}", "{a} - {b} =", "{a}-{b}", "How much is {a} - {b}?", "What is {a} minus {b}?", "How much is {a} minus {b}?",
        "Calculate {a} - {b}.", "Take {b} away from {a}.", "{a} minus {b}?", "Subtract {b} from {a}.", "What is left of {a} without {b}?", "{a} take away {b}?", "What is the difference between {a} and {b}?",
    ),
    unseen=("Can you tell me {a} - {b}?", "Compute {a} minus {b}.", "Please take {b} from {a}."),
)  # fmt: skip


def exchange(rng, unseen=False, exam=False):
    """A question about a trained pair of numbers, or with exam about one that is held out.  Either wording may be the unseen one."""
    plus, a, b = _pair(rng, exam)
    wordings = SUM if plus else DIFFERENCE
    return Exchange(wordings.pick(rng, unseen, a=a, b=b), result(plus, a, b))


def result(plus, a, b):
    """The one right answer."""
    return f"{a} + {b} = {a + b}." if plus else f"{a} - {b} = {a - b}."


def drill(rng):
    """A column of rows, with or without the working."""
    working = rng.random() < 0.6
    return "\n".join(_row(*_pair(rng, False), working) for _ in range(rng.randrange(8, 18)))


def _row(plus, a, b, working):
    line = result(plus, a, b).rstrip(".")
    return f"{line}: {_working(plus, a, b)}" if working else line


def _working(plus, a, b):
    """Ones first, then tens with what was carried or borrowed, as at school."""
    ones_a, ones_b, tens_a, tens_b = a % 10, b % 10, a // 10, b // 10
    if plus:
        carry = (ones_a + ones_b) // 10
        return f"{ones_a} + {ones_b} = {ones_a + ones_b}, {tens_a} + {tens_b} + {carry} = {tens_a + tens_b + carry}"
    borrow = 1 if ones_a < ones_b else 0
    return f"{ones_a + 10 * borrow} - {ones_b} = {ones_a + 10 * borrow - ones_b}, {tens_a} - {tens_b} - {borrow} = {tens_a - tens_b - borrow}"


def _pair(rng, exam):
    """(whether it is a sum, first number, second number), from the trained or from the held-out pairs; no difference is negative."""
    while True:
        plus = rng.random() < 0.55
        top = heldout.SMALL + 1 if not exam and rng.random() < 0.12 else 100
        a, b = rng.randrange(top), rng.randrange(top)
        if not plus and a < b:
            a, b = b, a
        if heldout.is_held_out_sum(plus, a, b) == exam:
            return plus, a, b
