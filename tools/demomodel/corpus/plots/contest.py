"""A race in which the winner turns back."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="contest",
    theme="[a race|a contest|winning and losing]",
    beats=(
        Beat("Every [summer|year] there was a [great race|race around the lake], and the prize was {thing.a_looks}. {Hero} wanted to win it."),
        Beat("So did {friend}, {friend.a_trait_kind}. \"I shall beat you, {hero}!\" said {friend}. \"We shall see, {friend},\" said {hero}."),
        Beat('{Stranger.a_trait_kind} [waved a flag|blew a horn], and off they went.'),
        Beat("{Hero} ran [past the barn|over the bridge] and {friend} ran close behind. Nobody else could keep up.", long=True),
        Beat("[Near the end|Just before the last bend], {friend} fell. \"My [foot|knee]!\" cried {friend}."),
        Beat("{Hero} saw the {thing} shining at the finish. Then {hero} looked back at {friend}."),
        Beat("{Hero} turned round. \"[Lean on me|Give me your hand], {friend},\" {hero.he} said, and so they went on together."),
        Beat("They came in last, {hero} and {friend}, but [everyone cheered|the people clapped for a long time].", long=True),
        Beat('"The {thing} is for both of you," said the {stranger.kind}. "{Hero} had the quickest legs and the kindest heart."'),
    ),
)
