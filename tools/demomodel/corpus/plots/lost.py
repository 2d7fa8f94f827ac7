"""The thing is gone; the hero asks everyone, and finds it where nobody looked."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="lost",
    theme="[losing and finding|something lost|patience]",
    beats=(
        Beat("{Hero} [loved|took good care of] {hero.his} {thing}. It was {thing.looks}, and it had belonged to {hero.his} [grandmother|grandfather|aunt]."),
        Beat("One [morning|day|evening], the {thing} was gone. {Hero} looked [under the bed|behind the door|in every drawer] and [on the roof|in the cellar|in the yard]."),
        Beat("{Hero} asked {stranger.a_trait_kind}. \"I have not seen your {thing},\" said the {stranger.kind}, \"but ask {friend}, for {friend} sees everything.\""),
        Beat("So {hero} went to {friend}, {friend.a_trait_kind}. \"{Friend}, have you seen my {thing}?\" asked {hero}."),
        Beat('"[Let us think|Sit down and think], {hero}," said {friend}. "Where did you have it last?"'),
        Beat('{Hero} thought of the [bridge|orchard|market|barn], and they went there, but there was only [straw|an old shoe|a sleeping cat].', long=True),
        Beat('"[We will not give up|One more try]," said {friend}, and {hero} nodded.', long=True),
        Beat("They went back [along the road|step by step], {hero} on the left and {friend} on the right. And there it was, [in the tall grass|under a bench|behind a barrel]!"),
        Beat('"My {thing}!" cried {hero}. "[Two see more than one|Four eyes are better than two]," said {friend}.'),
    ),
)
