"""Hindrances of a journey.  {who} is whoever helps."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Road:
    trouble: str
    help: str


ROADS = (
    Road("[After an hour|Soon] the road split in two, and there was no sign", "The {who.kind} knew the country and pointed to the [left|right]"),
    Road("[Behind the wood|At noon] the bridge was gone", "The {who.kind} knew a place where the stream was [shallow|narrow], and they crossed it together"),
    Road("[Towards evening|Then] a thick fog came down", "The {who.kind} walked in front and called at every turn, until the fog was behind them"),
    Road("A fallen tree lay across the path", "The {who.kind} pushed on one side and {hero} on the other, and the tree rolled away"),
    Road("[On the hill|In the pass] the wind was so strong that nobody could stand", "The {who.kind} showed {hero} a path behind the rocks"),
    Road("[By midday|Before long] the bread was eaten, and there was no house far and wide", "The {who.kind} shared some [nuts|apples|cheese] with {hero}"),
    Road("A gate was shut, and the guard was asleep", "The {who.kind} [sang so loudly|knocked so long] that the guard woke up and opened the gate"),
    Road("[In the valley|Beyond the field] the ground was soft and wet", "The {who.kind} went first, from stone to stone, and {hero} stepped where the {who.kind} had stepped"),
)
