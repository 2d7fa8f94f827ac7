"""Where the stories happen."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """where says where somebody lives; detail is a sentence without its full stop; asked is how a request names the place."""

    name: str
    where: str
    detail: str
    asked: str


PLACES = (
    Place("forest", "[deep in|on the edge of] a [dark|green|silent] forest", "[Moss grew on every stone|The trees were older than anyone could say]", "in a forest"),
    Place("hill", "[on|below] a [bare|round|grassy] hill", "[From there you could see three villages|The wind never quite stopped there]", "on a hill"),
    Place("river", "[by|not far from] a [broad|winding|quick] river", "[All night the water talked to itself|Dragonflies stood in the air above the reeds]", "by a river"),
    Place("meadow", "[at the end of|beside] a [wide|flowery] meadow", "[In summer the whole air hummed|Crickets played there every evening]", "in a meadow"),
    Place("village", "in a [small|sleepy|friendly] village", "[Everyone there knew everyone's birthday|There was one street, one well and one bench]", "in a village"),
    Place("harbour", "[in|above] a [little|windy] harbour", "[The boats knocked together like old friends|It smelled of tar and fish]", "in a harbour"),
    Place("garden", "[in|behind] a [walled|forgotten|large] garden", "[Pears hung over the wall|Bees went in and out of the old roses]", "in a garden"),
    Place("mill", "[in|beside] an old mill", "[The wheel creaked from dawn till dusk|Flour lay on everything like snow]", "in a mill"),
    Place("island", "on a [small|lonely|rocky] island", "[The sea was at the end of every path|Only seven houses stood there]", "on an island"),
    Place("lighthouse", "in a [white|tall|lonely] lighthouse", "[Its lamp swept over the waves at night|There were ninety-nine steps to the top]", "in a lighthouse"),
    Place("mountain", "[high on|at the foot of] a [steep|snowy] mountain", "[The snow lay there until June|Every shout came back twice]", "on a mountain"),
    Place("lake", "[beside|near] a [still|cold|blue] lake", "[Mist sat on the water in the morning|The moon liked to look at itself there]", "by a lake"),
    Place("valley", "in a [quiet|hidden|narrow] valley", "[Only one road led in, and it led out again|The evenings came early there]", "in a valley"),
    Place("town", "in a [busy|little|crooked] town", "[The bells rang each hour, but never quite together|The market came every Friday]", "in a town"),
)  # fmt: skip
