"""What training must never see, so that the exam can ask it.

Three things are held out: wordings (each list of questions names its unseen ones), pairs of numbers in sums, and pairs of hero and
thing in stories.  A pair is held out by a checksum of its key and nothing else, so the answer is the same on every machine, for
every seed and in every process.
"""

import zlib

SHARE = 12  # one pair in twelve is kept for the exam


def is_held_out(*key):
    """Tells whether the combination named by key belongs to the exam."""
    return zlib.crc32("/".join(map(str, key)).encode()) % SHARE == 0


def sum_key(a, b):
    """The key of a sum: 3 + 5 and 5 + 3 are the same piece of knowledge."""
    return ("sum", min(a, b), max(a, b))


def difference_key(a, b):
    """The key of a difference a - b."""
    return ("difference", a, b)


def story_key(kind, thing):
    """The key of a story about a kind of hero and a thing."""
    return ("story", kind, thing)
