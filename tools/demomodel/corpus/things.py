"""The things that stories are about: what each looks like, the trouble it ends, and how."""

from dataclasses import dataclass

from .grammar import with_article


@dataclass(frozen=True)
class Thing:
    """need is the friend's trouble (a clause in the past tense), relief the sentence in which the hero ends it with the thing."""

    noun: str
    looks: str
    need: str
    relief: str

    def __str__(self):
        return self.noun

    @property
    def a(self):
        return with_article(self.noun)


def _things():
    rows = (
        ("lantern", "brass|small|green", "{friend} could not find the way home in the dark", "[{Hero} lit the lantern, and the path lay bright before them|{Hero} held up the lantern, and {friend} saw the road again]"),
        ("candle", "thick|white|tall", "the lamp of {friend} had gone out, and the house was black", "[{Hero} lit the candle, and the room was full of gold|{Hero} put the candle on the table, and nobody was afraid any more]"),
        ("rope", "long|strong|new", "{friend} had slid into a deep pit", "[{Hero} tied the rope to a tree, and {friend} climbed out|{Hero} let down the rope and pulled until {friend} stood on firm ground]"),
        ("ladder", "wooden|light|long", "{friend} sat on a high branch and could not get down", "[{Hero} put up the ladder, and {friend} came down step by step|{Hero} held the ladder, and soon {friend} stood on the grass]"),
        ("umbrella", "red|huge|spotted", "{friend} sat in the pouring rain", "[{Hero} opened the umbrella, and there was room for two|{Hero} held the umbrella over {friend} until the sky was blue]"),
        ("blanket", "warm|thick|woollen", "{friend} was cold to the bone", "[{Hero} laid the blanket around {friend}, and the shivering stopped|{Hero} spread the blanket over {friend}, who was soon warm again]"),
        ("map", "old|folded|torn", "{friend} had lost the road", "[{Hero} unfolded the map, and they found the right road together|{Hero} looked at the map and pointed, and there was the road]"),
        ("bell", "silver|heavy|little", "{friend} was lost in the fog", "[{Hero} rang the bell, and {friend} walked towards the sound|{Hero} rang the bell again and again until {friend} came out of the fog]"),
        ("whistle", "tin|loud|small", "{friend} had lost the whole flock", "[{Hero} blew the whistle, and the sheep came running|One call of the whistle from {hero}, and the flock turned round]"),
        ("boat", "blue|flat|little", "the flood had come, and {friend} was sitting on a roof", "[{Hero} rowed the boat to the roof, and {friend} climbed in|{Hero} pushed the boat out and brought {friend} back to land]"),
        ("basket", "round|deep|willow", "{friend} had too many plums to carry", "[{Hero} held out the basket, and all the plums went in|{Hero} filled the basket, and they carried it between them]"),
        ("bucket", "tin|blue|big", "the garden of {friend} was dry as dust", "[{Hero} carried water in the bucket until every leaf stood up again|{Hero} filled the bucket at the well, again and again, and the garden was saved]"),
        ("key", "rusty|golden|tiny", "{friend} was locked out of the house", "[{Hero} tried the key, and the door swung open|{Hero} turned the key in the lock, and it clicked]"),
        ("hammer", "small|good|heavy", "the roof of {friend} had a hole", "[{Hero} took the hammer, and by noon the roof was whole|With the hammer and nine nails {hero} closed the hole]"),
        ("kite", "yellow|paper|striped", "{friend} lay in bed and was bored and sad", "[{Hero} flew the kite before the window, and {friend} laughed aloud|{Hero} let the kite dance over the roof until {friend} smiled]"),
        ("flute", "wooden|silver|thin", "{friend} could not sleep", "[{Hero} played softly on the flute, and {friend} slept at last|{Hero} played the flute until the stars came out and {friend} closed both eyes]"),
        ("drum", "red|round|old", "nobody heard {friend} calling for help", "[{Hero} beat the drum, and the whole street came out to help|{Hero} beat the drum so loudly that help came from everywhere]"),
        ("compass", "brass|little|old", "{friend} did not know which way was north", "[{Hero} held the compass flat, and the needle showed the way|{Hero} looked at the compass, and soon they were on the right path]"),
        ("mirror", "round|small|bright", "{friend} was on the far bank and could not be heard", "[{Hero} caught the sun in the mirror, and {friend} saw the sign|{Hero} sent flashes with the mirror until {friend} waved back]"),
        ("scarf", "green|long|soft", "{friend} had a sore throat", "[{Hero} wound the scarf around the neck of {friend}, and it felt better at once|{Hero} gave the scarf to {friend}, and by evening the voice was back]"),
        ("broom", "new|strong|wide", "soot had fallen all over the kitchen of {friend}", "[{Hero} took the broom and swept until the floor shone|{Hero} swung the broom, and in an hour the kitchen was clean]"),
        ("cart", "wooden|two-wheeled|little", "{friend} had hurt a foot and could not walk", "[{Hero} pulled the cart, and {friend} rode home like a king|{Hero} lifted {friend} into the cart and pulled it home]"),
        ("shovel", "iron|short|good", "snow had closed the door of {friend}", "[{Hero} took the shovel and dug a path to the door|{Hero} dug with the shovel until the door could be opened]"),
        ("net", "fine|green|wide", "the hat of {friend} was floating away on the river", "[{Hero} threw the net and caught the hat|{Hero} reached out with the net, and there was the hat, wet but safe]"),
        ("sledge", "fast|red|wooden", "{friend} needed firewood before the night", "[{Hero} loaded the sledge with wood and pulled it through the snow|{Hero} brought the wood on the sledge, and soon the stove was warm]"),
        ("teapot", "blue|round|chipped", "{friend} had a bad cold", "[{Hero} filled the teapot with hot tea, and they drank it to the last drop|{Hero} made tea in the teapot, and {friend} could breathe again]"),
        ("book", "thick|old|red", "{friend} was alone and the evening was long", "[{Hero} read from the book, and the evening was too short|{Hero} opened the book and read, and {friend} forgot to be sad]"),
        ("feather", "white|long|blue", "{friend} had no pen for an important letter", "[{Hero} cut the feather to a point, and {friend} wrote the letter|{Hero} made a pen from the feather, and the letter was written in time]"),
    )  # fmt: skip
    return tuple(Thing(*row) for row in rows)


THINGS = _things()
