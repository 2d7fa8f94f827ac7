"""Something is built in a hurry, falls down, and is built again with a friend and with patience."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="workshop",
    theme="[building something|patience|working together]",
    beats=(
        Beat("{Hero} wanted to build a [bridge|tower|tree house|boat house]. The only tool {hero} had was {thing.a_looks}."),
        Beat('"[A {thing} is enough|That will do]," said {hero}, and {hero.he} [began at once|worked until evening].'),
        Beat("But the [wind came|rain came|first guest came], and everything fell down. {Hero} [sat down and sighed|kicked a plank]."),
        Beat("Then {friend} came by, {friend.a_trait_kind}. \"What is the matter, {hero}?\" asked {friend}."),
        Beat('"Nothing that I build will stand," said {hero}. "[Begin with the ground|First the plan, then the work]," said {friend}. "I will help you, {hero}."'),
        Beat("{Friend} measured, and {hero} cut. {Hero} held, and {friend} tied. They even found a use for the {thing}.", long=True),
        Beat('"[Slowly, {hero}|Not so fast, {hero}]," said {friend} [once or twice|now and then].', long=True),
        Beat("After [three days|a week] it was done. The wind [blew|howled], but it stood."),
        Beat('"[We did it|It stands], {friend}!" cried {hero}. "[Of course|I knew it]," said {friend}. "There were two of us."'),
    ),
)
