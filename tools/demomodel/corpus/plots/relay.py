"""A message is handed from one to the next; when a carrier falls, another takes over.  HECATE's own fable."""

from ..plot import Beat, Plot

PLOT = Plot(
    name="relay",
    theme="[teamwork|helping each other|a message]",
    beats=(
        Beat("Beyond the mountains {friend}, {friend.a_trait_kind}, was waiting for {thing.a_looks}. {Hero} had promised to send it."),
        Beat('"It is too far for one," said {hero}, "but not for [many|all of us]." So {hero} asked {stranger.a_trait_kind} and {second.a_trait_kind}.'),
        Beat("{Hero} carried the {thing} to the [river|first bridge], and the {stranger.kind} carried it on."),
        Beat("[Halfway|In the pass], the {stranger.kind} [slipped on the ice|hurt a leg]. \"I cannot go on,\" said the {stranger.kind}."),
        Beat('"[Do not worry|Never mind]," said the {second.kind}. "I know the way too. I shall take the {thing} from here."'),
        Beat("{Hero} [heard of it|saw it from the hill] and ran to help the {stranger.kind} home.", long=True),
        Beat("The {second.kind} went on through [the snow|the night], and nothing was lost.", long=True),
        Beat('The next morning the {thing} [was in the hands of|reached] {friend}. "{Hero} kept the promise," said {friend}.'),
        Beat('"[Nobody walks the whole way alone|One falls, another goes on]," said {hero} [later|when {friend} came to visit], "and that is why we arrive."'),
    ),
)
