"""A night without sleep, and the small thing that makes it short."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="night watch",
    theme="[the night|being afraid of the dark|going to sleep]",
    beats=(
        Beat("[One winter night|One night] {hero} could not sleep. [The wind sang in the chimney|Something creaked on the stairs], and the moon was [hidden|thin]."),
        Beat('"Are you awake, {hero}?" whispered {friend}, {friend.a_trait_kind} who was staying as a guest. "Yes, {friend}," said {hero}.'),
        Beat("{Hero} [got up|lit the stove] and fetched {thing.a_looks}. \"[When I was little|Long ago], this {thing} helped me,\" said {hero}."),
        Beat('"How can a {thing} help at night?" asked {friend}. "[It makes me think of the day|I hold it and count to a hundred]," said {hero}.'),
        Beat("[An owl called|A dog barked] far away, and then it was so quiet that they could hear [the snow fall|the clock in the next house].", long=True),
        Beat("So {hero} and {friend} sat [by the window|under the stairs], with the {thing} between them, and counted the stars."),
        Beat('"Forty-one," said {hero}. "Forty-two," said {friend}, and then {friend} [was asleep|said nothing more].', long=True),
        Beat("{Hero} [laid a coat over|tucked in] {friend} and smiled. [The night was not so long after all|Then {hero.he} was asleep too]."),
    ),
)
