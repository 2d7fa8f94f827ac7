"""A friend is in trouble, and the thing that nobody needed is just what is needed."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="rescue",
    theme="[helping a friend|a friend in need|being useful]",
    beats=(
        Beat("{Hero} [owned|had] [one treasure|just one fine thing]: {thing.a_looks}. {Friend} the {friend.kind} lived next door."),
        Beat('"What do you need that {thing} for?" the neighbours asked. "I [will know|shall see] when the day comes," said {hero}.', long=True),
        Beat("One [morning|evening|day in autumn], {hero} heard [a cry|somebody calling]. It was {friend}: {need}."),
        Beat('"[Hold on|Wait], {friend}!" [called|cried] {hero}. "I am coming!"'),
        Beat("{Hero} ran [past the well|down the steps|through the wet grass], and {hero.his} heart beat [fast|like a drum].", long=True),
        Beat("{Hero} [fetched|took] the {thing} and [hurried|ran] to {friend}. {relief}."),
        Beat('"[Now I see what it is for|So that is what it is good for]," said {friend}, and {hero} [laughed|smiled].'),
        Beat('"How can I thank you, {hero}?" asked {friend}. "[Come to supper|Stay for tea]," said {hero}, "and tell me [a joke|the whole story]."', long=True),
        Beat("[From that day on|After that], nobody asked {hero} about the {thing} again."),
    ),
)
