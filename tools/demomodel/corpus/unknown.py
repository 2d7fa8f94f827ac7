"""Questions beyond a very small model, and its honest answer."""

from .exchange import Exchange
from .grammar import choose

TRAINED = (
    "Who [won|will win] the [world cup|football match|election|race]?", "What is the weather [like|] [today|tomorrow|in {country}]?", "What time is it?", "[What day is it|What is the date] today?",
    "Who is the [president|king|queen|prime minister] of {country}?", "How many people live in {country}?", "What language do they speak in {country}?", "What is the money of {country} called?",
    "Write [a program|some code|a function] in [Python|Go|Java|C].", "Solve this equation.", "What is [the meaning of life|the speed of light|the price of gold|the best phone]?",
    "Who [wrote|painted|composed|invented|discovered] [hamlet|the telephone|the mona lisa|gravity|the light bulb|radio]?", "Explain [relativity|the stock market|photosynthesis|black holes|inflation|evolution].",
    "How do I [fix my car|cook rice|learn French|get rich|make bread|tie a tie]?", "Who is [Albert Einstein|Napoleon|Shakespeare|Mozart|Cleopatra|Isaac Newton]?", "Recommend [a book|a film|a restaurant|some music].",
    "What is [17 times 23|3 times 4|144 divided by 12|the square root of 81|2 to the power of 10|5 x 6]?", "When did the [second world war|roman empire|cold war|french revolution] [end|begin]?",
    "Write [an email to my boss|a poem about love|a song|an essay|a letter to the bank].", "Book [a flight|a ticket|a table] for me.", "What is the news[ today|]?", "[Summarize|Correct|Rewrite] this text.",
    "Translate this[ into French| into German|].", "Who is my neighbour?", "What am I thinking?", "How old am I?", "Where am I?", "What did I eat yesterday?", "What is my name?",
)  # fmt: skip
UNSEEN = ("Who was the first person on the moon?", "Give me stock tips.", "What is the melting point of iron?", "What is the best car?", "How tall is the highest mountain?", "Which team is the strongest?", "Draw a picture of a house.")
ANSWERS = ("I do not know that. I am a very small demo model: try a story, a capital city, a common word or a small sum.", "I cannot do that. I am a very small demo model: try a story, a capital city, a common word or a small sum.")


def exchange(rng, country, unseen=False):
    """A question beyond the model; country fills the questions about countries."""
    question = choose(rng, rng.choice(UNSEEN if unseen else TRAINED)).replace("{country}", str(country))
    return Exchange(question, rng.choice(ANSWERS), accept=frozenset(ANSWERS))
