"""A present that is made by hand and goes wrong at first."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="gift",
    theme="[a birthday|a present|giving]",
    beats=(
        Beat("[Soon|In three days|Next Sunday] it would be the birthday of {friend}, {friend.a_trait_kind}. {Hero} wanted to give {friend} something special."),
        Beat('"What does {friend} wish for?" {hero} asked {stranger.a_trait_kind}. "A {thing}," said the {stranger.kind}. "{Friend} [talks|dreams] of nothing else."'),
        Beat("But {hero} had [no money|only two coins]. So {hero} [decided|made up {hero.his} mind] to make one."),
        Beat("The first {thing} [broke|fell apart], and the second [was crooked|looked like a potato].", long=True),
        Beat('"[I cannot do it|It is too hard]," said {hero}. "[Try again|Once more], {hero}," said the {stranger.kind}. "I will hold the lamp."', long=True),
        Beat("{Hero} worked [all night|for two days] until it was done: {thing.a_looks}."),
        Beat("On the birthday, {hero} gave it to {friend}. {Friend} [was silent for a moment|turned it round and round]."),
        Beat('"Did you make this {thing} yourself, {hero}?" asked {friend}. "Yes," said {hero}, "[it is a little crooked|with these two hands]."'),
        Beat('"[It is the best of all|I like it better than any other]," said {friend}, and {hero} [turned red|was very happy].'),
    ),
)
