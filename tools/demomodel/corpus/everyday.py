"""Everyday facts that fit into a table: days, months, opposites, colours, animals, numbers in a row, and some single ones."""

from .exchange import Exchange, Wordings
from .grammar import capital, expand, fill, with_article

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()


def _pairs(text):
    return tuple(tuple(item.split(":")) for item in text.split("|"))


OPPOSITES = _pairs(
    "hot:cold|big:small|up:down|left:right|day:night|black:white|good:bad|fast:slow|high:low|long:short|old:young|happy:sad|open:closed|full:empty|hard:soft"
    "|heavy:light|near:far|early:late|rich:poor|strong:weak|wet:dry|clean:dirty|loud:quiet|first:last|in:out|on:off|yes:no|true:false|wide:narrow|deep:shallow"
    "|thick:thin|warm:cool|easy:difficult|begin:end|push:pull|above:below|inside:outside|win:lose|buy:sell|laugh:cry|love:hate|summer:winter|north:south|east:west|always:never|before:after"
)
COLOURS = _pairs(
    "grass:green|snow:white|the sky:blue|coal:black|a banana:yellow|a lemon:yellow|the sun:yellow|a ripe tomato:red|a strawberry:red|chocolate:brown|milk:white"
    "|a carrot:orange|a frog:green|the sea:blue|a raven:black|an elephant:grey|a pig:pink|a plum:purple|a cucumber:green|a polar bear:white|salt:white|a cherry:red|the night:black|a violet:purple"
)
SOUNDS = _pairs("cow:moo|dog:woof|cat:meow|sheep:baa|duck:quack|pig:oink|horse:neigh|rooster:cock-a-doodle-doo|frog:croak|owl:hoo hoo|bee:buzz|mouse:squeak|lion:roar|snake:hiss|crow:caw|hen:cluck|donkey:hee-haw")
YOUNG = _pairs("cat:kitten|dog:puppy|cow:calf|horse:foal|sheep:lamb|hen:chick|duck:duckling|goose:gosling|pig:piglet|bear:cub|lion:cub|goat:kid|deer:fawn|frog:tadpole|kangaroo:joey|swan:cygnet|owl:owlet|rabbit:kit|hare:leveret")
HOMES = _pairs(
    "a bird:in a nest|a bee:in a hive|a fish:in the water|a fox:in a den|a rabbit:in a burrow|a spider:in a web|a horse:in a stable|a bear:in a den|a beaver:in a lodge|an ant:in an anthill|a dog:in a kennel|a cow:in a barn|a mole:under the ground|a hedgehog:under a hedge"
)
LEGS = _pairs("a dog:four legs|a cat:four legs|a spider:eight legs|an ant:six legs|a bee:six legs|a bird:two legs|a horse:four legs|a snake:no legs|a fish:no legs|a person:two legs|a fly:six legs|a crab:ten legs|an octopus:eight arms")
JOBS = _pairs("a baker:bakes bread|a doctor:helps sick people|a teacher:teaches children|a farmer:grows food|a pilot:flies a plane|a sailor:works on a ship|a tailor:makes clothes|a carpenter:works with wood|a painter:paints|a postman:brings letters|a miller:grinds grain|a cook:prepares food")

# Tables: pairs, trained and unseen wordings, answer.  {a} and {b} are the halves of a pair.
TABLES = (
    (OPPOSITES, Wordings(("[What is|What's] the opposite of {a}?", "[The opposite|Opposite] of {a}?", "Tell me the opposite of {a}.", "Do you know the opposite of {a}?", "Which word means the opposite of {a}?"), ("Name the opposite of {a}.", "Give me the opposite of {a}.")), "The opposite of {a} is {b}."),
    (tuple((b, a) for a, b in OPPOSITES), Wordings(("[What is|What's] the opposite of {a}?", "[The opposite|Opposite] of {a}?", "Tell me the opposite of {a}.", "Do you know the opposite of {a}?", "Which word means the opposite of {a}?"), ("Name the opposite of {a}.", "Give me the opposite of {a}.")), "The opposite of {a} is {b}."),
    (COLOURS, Wordings(("What [colour|color] is {a}?", "Which [colour|color] is {a}?", "Tell me the [colour|color] of {a}.", "What [colour|color] does {a} have?", "Which [colour|color] does {a} have?"), ("What is the [colour|color] of {a}?",)), "{A} is {b}."),
    (SOUNDS, Wordings(("What does {aa} say?", "What sound does {aa} make?", "How does {aa} sound?", "Which sound does {aa} make?", "What do you hear from {aa}?"), ("What noise does {aa} make?",)), "{Aa} says {b}."),
    (YOUNG, Wordings(("What is a baby {a} called?", "What do you call a baby {a}?", "What is a young {a} called?", "How do you call a young {a}?", "Name of a baby {a}?"), ("What is the name for a baby {a}?",)), "A baby {a} is called {bb}."),
    (HOMES, Wordings(("Where does {a} live?", "Where is {a} at home?", "Where can I find {a}?", "In what does {a} live?", "Tell me where {a} lives."), ("What is the home of {a}?",)), "{A} lives {b}."),
    (LEGS, Wordings(("How many legs does {a} have?", "How many legs are there on {a}?", "Tell me how many legs {a} has.", "Legs of {a}?", "The number of legs of {a}?"), ("How many legs has {a}?",)), "{A} has {b}."),
    (JOBS, Wordings(("What does {a} do?", "What is the work of {a}?", "What does {a} do all day?", "Tell me what {a} does.", "What do you need {a} for?"), ("What is the job of {a}?",)), "{A} {b}."),
)  # fmt: skip

# Rows: lists in order, and what is asked about neighbours.
AFTER = Wordings(("What {unit} comes after {a}?", "Which {unit} comes after {a}?", "What comes after {a}?", "What {unit} is after {a}?", "After {a} comes?"), ("Which {unit} follows {a}?",))
BEFORE = Wordings(("What {unit} comes before {a}?", "Which {unit} comes before {a}?", "What comes before {a}?", "What {unit} is before {a}?", "Before {a} comes?"), ("Which {unit} is just before {a}?",))
NTH = Wordings(("[What|Which] is the {nth} month of the year?", "[What|Which] is the {nth} month?", "Name the {nth} month.", "The {nth} month?"), ("Tell me the {nth} month of the year.",))

# Single facts: trained wordings, unseen wording, answer.
SINGLE = (
    (("How many days [are in|are there in] a week?", "How many days does a week have?", "Days in a week?"), "How many days make a week?", "A week has seven days."),
    (("How many months [are in|are there in] a year?", "How many months does a year have?", "Months in a year?"), "How many months make a year?", "A year has twelve months."),
    (("How many hours [are in|are there in] a day?", "How many hours does a day have?", "Hours in a day?"), "How many hours make a day?", "A day has twenty-four hours."),
    (("How many minutes [are in|are there in] an hour?", "How many minutes does an hour have?", "Minutes in an hour?"), "How many minutes make an hour?", "An hour has sixty minutes."),
    (("How many seconds [are in|are there in] a minute?", "How many seconds does a minute have?", "Seconds in a minute?"), "How many seconds make a minute?", "A minute has sixty seconds."),
    (("How many days [are in|are there in] a year?", "How many days does a year have?", "Days in a year?"), "How many days make a year?", "A year has 365 days, and a leap year has 366."),
    (("What are the [four |]seasons?", "[Name|List] the [four |]seasons.", "Which seasons are there?", "How many seasons are there?"), "Tell me the seasons.", "The four seasons are spring, summer, autumn and winter."),
    (("What are the days of the week?", "[Name|List] the days of the week.", "Which days does a week have?"), "Tell me the days of the week.", "The days are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."),
    (("What are the months[ of the year|]?", "[Name|List] the months[ of the year|].", "Which months does a year have?"), "Tell me the months of the year.", "The months are January, February, March, April, May, June, July, August, September, October, November and December."),
    (("What are the primary colours?", "[Name|List] the primary colours.", "Which are the primary colours?"), "Tell me the primary colours.", "The primary colours are red, yellow and blue."),
    (("What [colour|color] do blue and yellow make?", "What do you get [from|by mixing] blue and yellow?", "Blue and yellow make what?"), "Which colour comes from blue and yellow?", "Blue and yellow make green."),
    (("What [colour|color] do red and yellow make?", "What do you get [from|by mixing] red and yellow?", "Red and yellow make what?"), "Which colour comes from red and yellow?", "Red and yellow make orange."),
    (("What [colour|color] do red and blue make?", "What do you get [from|by mixing] red and blue?", "Red and blue make what?"), "Which colour comes from red and blue?", "Red and blue make purple."),
    (("Which colours are in a rainbow?", "What colours does a rainbow have?", "[Name|List] the colours of the rainbow."), "Tell me the colours of the rainbow.", "A rainbow has red, orange, yellow, green, blue, indigo and violet."),
    (("When does water freeze?", "At what temperature does water freeze?", "How cold must it be for water to freeze?"), "What is the freezing point of water?", "Water freezes at 0 degrees Celsius."),
    (("When does water boil?", "At what temperature does water boil?", "How hot must it be for water to boil?"), "What is the boiling point of water?", "Water boils at 100 degrees Celsius."),
    (("What do bees make?", "What do we get from bees?", "What does a bee make?"), "What is made by bees?", "Bees make honey."),
    (("What do cows give us?", "What do we get from cows?", "What does a cow give?"), "What comes from cows?", "Cows give us milk."),
    (("What is ice?", "What is ice made of?", "What is frozen water?"), "What does ice consist of?", "Ice is frozen water."),
    (("Which planet do we live on?", "What is the name of our planet?", "On which planet are we?"), "What planet are we on?", "We live on the planet Earth."),
    (("How many continents are there?", "What are the continents?", "[Name|List] the continents."), "Tell me the continents.", "There are seven continents: Africa, Antarctica, Asia, Australia, Europe, North America and South America."),
    (("What goes around the earth?", "What moves around the earth?", "Does the moon go around the earth?"), "What circles the earth?", "The moon goes around the earth."),
    (("Where does the sun rise?", "In which direction does the sun rise?", "Where does the sun come up?"), "On which side does the sun rise?", "The sun rises in the east."),
    (("Where does the sun set?", "In which direction does the sun set?", "Where does the sun go down?"), "On which side does the sun set?", "The sun sets in the west."),
    (("What do plants need?", "What does a plant need to grow?", "What do flowers need?"), "What must a plant have?", "Plants need light, water and air."),
)  # fmt: skip


def exchange(rng, unseen=False):
    """One everyday fact."""
    kind = rng.random()
    if kind < 0.55:
        return _from_table(rng, unseen)
    if kind < 0.80:
        return _from_row(rng, unseen)
    trained, kept, answer = rng.choice(SINGLE)
    return Exchange(expand(rng, kept if unseen else rng.choice(trained)), answer)


def _from_table(rng, unseen):
    pairs, wordings, answer = rng.choice(TABLES)
    a, b = rng.choice(pairs)
    slots = dict(a=a, b=b, aa=with_article(a), bb=with_article(b))
    return Exchange(wordings.pick(rng, unseen, **slots), fill(answer, **slots))


def _from_row(rng, unseen):
    kind = rng.randrange(4)
    if kind == 3:
        i = rng.randrange(12)
        return Exchange(NTH.pick(rng, unseen, nth=ORDINALS[i]), f"The {ORDINALS[i]} month is {MONTHS[i]}.")
    row, unit = ((DAYS, "day"), (MONTHS, "month"), ([str(n) for n in range(100)], "number"))[kind]
    later = rng.random() < 0.6
    i = rng.randrange(len(row)) if kind < 2 else rng.randrange(1, len(row) - 1)
    other = row[(i + (1 if later else -1)) % len(row)]
    wordings, word = (AFTER, "after") if later else (BEFORE, "before")
    return Exchange(wordings.pick(rng, unseen, unit=unit, a=row[i]), capital(f"{other} comes {word} {row[i]}."))
