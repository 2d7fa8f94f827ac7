"""The shape of a plot: a row of beats, told in order."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Beat:
    """One or two sentences.  A beat that is only for long stories is left out of short ones."""

    text: str
    long: bool = False


@dataclass(frozen=True)
class Plot:
    """theme is what a request may ask for ("a story about patience"); uses_thing tells whether the thing matters to the plot."""

    name: str
    theme: str
    beats: tuple
    uses_thing: bool = True
