"""The hero carries the thing to a friend, and each hindrance on the road is overcome with somebody's help."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="journey",
    theme="[a long way|a journey|not giving up]",
    beats=(
        Beat("[One day|One morning|In spring] a letter came from {friend}, {friend.a_trait_kind} who lived [far away|beyond the hills]."),
        Beat('"[Dear {hero}|My dear {hero}]," it said, "[I am in trouble|please help me]." {need.sentence}.'),
        Beat('{Hero} [did not think twice|thought for a moment]. "{Friend} needs a {thing}," {hero.he} said. {Hero.he} [packed|took] {thing.a_looks} and set out.'),
        Beat("{road.trouble}. There {hero} met {stranger.a_trait_kind}."),
        Beat('"Where are you going?" asked the {stranger.kind}. "To {friend}," said {hero}. "{Friend} is waiting for me."'),
        Beat("{road.help}."),
        Beat('"[Thank you|You are very kind]," said {hero}. "[Go on, {hero}|Hurry, {hero}]," said the {stranger.kind}, "{friend} is waiting."'),
        Beat("{turn.trouble}. {Hero} was [tired|almost ready to turn back], but then {second.a_trait_kind} came by.", long=True),
        Beat("{turn.help}. {Hero} thanked the {second.kind} and went on.", long=True),
        Beat("At last {hero} [came to|stood before] the house of {friend}. {relief}."),
        Beat('"You came all this way, {hero}!" said {friend}. "[Not alone|I had help]," said {hero}.'),
    ),
)
