"""Two friends fall out over the thing and find each other again."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="quarrel",
    theme="[a quarrel|sharing|saying sorry]",
    beats=(
        Beat("{Hero} and {friend} were friends. {Friend} was {friend.a_trait_kind}, and the two did everything together."),
        Beat("One day they found {thing.a_looks} [by the road|under a hedge|on the beach]. \"[It is mine|I saw it first]!\" said {hero}. \"No, [it is mine|I saw it first]!\" said {friend}."),
        Beat("They pulled, {hero} on one side and {friend} on the other, until the {thing} [fell into the mud|flew into a bush]."),
        Beat("{Hero} went home angry, and {friend} went home angry too. For [three days|a whole week] they did not speak."),
        Beat("But {hero} [could not laugh alone|had nobody to play with], and {friend} [had nobody to talk to|ate supper without a word].", long=True),
        Beat('{Stranger.a_trait_kind} said to {hero}: "What is a {thing} without a friend?"', long=True),
        Beat("So {hero} [washed|cleaned] the {thing} and took it to {friend}. \"You may have it, {friend},\" said {hero}. \"I am sorry.\""),
        Beat('"I am sorry too, {hero}," said {friend}. "[Let us share it|It shall be ours]: one day you, one day me."'),
        Beat("And that is what {hero} and {friend} did."),
    ),
)
