"""What training must never see, so that the exam can ask it.

Three things are held out: wordings (each list of questions names its unseen ones), pairs of numbers in sums, and pairs of hero and
thing in stories.  A pair is held out by a checksum of its key and nothing else, so the answer is the same on every machine, for
every seed and in every process.
"""

import zlib

SHARE = 12  # one pair in twelve is kept for the exam
SMALL = 18  # sums and differences of numbers up to this are the steps of the larger ones, so all of them are trained


def is_held_out(*key):
    """Tells whether the combination named by key belongs to the exam."""
    return zlib.crc32("/".join(map(str, key)).encode()) % SHARE == 0


def is_held_out_sum(plus, a, b):
    """Tells it for a + b or a - b.  3 + 25 and 25 + 3 are the same piece of knowledge."""
    if max(a, b) <= SMALL:
        return False
    return is_held_out("sum", min(a, b), max(a, b)) if plus else is_held_out("difference", a, b)


def is_held_out_story(kind, thing):
    """Tells it for a story about a kind of hero and a thing."""
    return is_held_out("story", kind, thing)
