"""A tiny factbook and a tiny WordNet in their real file formats, so that tests need neither package."""

import json
from pathlib import Path

COUNTRIES = (
    ("europe", "fr", "France", "Paris", "Western Europe, bordering the sea"), ("europe", "gm", "Germany", "Berlin", "Central Europe, bordering the sea"),
    ("europe", "it", "Italy", "Rome (town)", "Southern Europe, a peninsula"), ("africa", "eg", "Egypt", "Cairo", "Northern Africa, bordering the sea"),
    ("central-america-n-caribbean", "bf", "The Bahamas", "Nassau; the largest town", "chain of islands, in the sea"), ("east-n-southeast-asia", "bm", "Burma", "Rangoon", "Southeastern Asia, on the sea"),
)  # fmt: skip
NOUNS = (
    ("bridge", "06", "a structure that allows people to cross a river", 40), ("buckle", "06", "fastener that fastens together two ends of a belt", 9),
    ("water", "27", "a clear liquid that falls as rain", 50), ("owl", "05", "a bird that hunts at night", 12), ("hour", "28", "a period of sixty minutes", 30),
    ("node", "06", "a connecting point at which several lines come together", 30), ("gun", "06", "a tool that makes a loud noise", 30), ("rare", "05", "a word that is seldom seen anywhere", 1),
)  # fmt: skip


def factbook(folder):
    """Writes the country files and a territory that must be left out; returns the folder."""
    for region, code, name, city, location in COUNTRIES:
        _country(folder, region, code, name, city, {"Location": {"text": location}}, {})
    _country(folder, "europe", "gi", "Gibraltar", "Gibraltar", {}, {"Dependency status": {"text": "overseas territory"}})
    return Path(folder)


def _country(folder, region, code, name, city, geography, more):
    path = Path(folder) / region / f"{code}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    government = {"Country name": {"conventional short form": {"text": name}}, "Capital": {"name": {"text": city}}} | more
    path.write_text(json.dumps({"Government": government, "Geography": geography}))


def wordnet(folder):
    """Writes data.noun, index.noun and cntlist.rev with a licence header line, as WordNet has it; returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data, index, counts = ["  1 This is a header line"], ["  1 This is a header line"], []
    for number, (word, file, gloss, count) in enumerate(NOUNS):
        offset = f"{10000 + number:08d}"
        data.append(f'{offset} {file} n 01 {word} 0 001 @ 00001740 n 0000 | {gloss}; "an example with {word}"  ')
        index.append(f"{word} n 1 1 @ 1 1 {offset}  ")
        counts.append(f"{word}%1:{file}:00:: 1 {count}")
    (folder / "data.noun").write_text("\n".join(data) + "\n")
    (folder / "index.noun").write_text("\n".join(index) + "\n")
    (folder / "cntlist.rev").write_text("\n".join(counts) + "\n")
    return folder
