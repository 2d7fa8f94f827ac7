"""Writes the data folder: train.jsonl, heldout.jsonl, exam.json and a manifest with seed and counts."""

import json
import random
from collections import Counter
from pathlib import Path

from . import exam
from .mixture import Mixture

HELD_OUT_CHARACTERS = 400_000


def build(folder, factbook, wordnet, megabytes, seed):
    """Writes megabytes of training text.  The same arguments give the same bytes on every machine."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mixture = Mixture(factbook, wordnet)
    held_out, texts = _documents(mixture, random.Random(f"{seed}/held out"), min(HELD_OUT_CHARACTERS, int(megabytes * 1e5)), frozenset())
    trained, _ = _documents(mixture, random.Random(f"{seed}/train"), int(megabytes * 1e6), texts)
    counts = {"heldout.jsonl": _write(folder / "heldout.jsonl", held_out), "train.jsonl": _write(folder / "train.jsonl", trained)}
    questions = exam.build(mixture, random.Random(f"{seed}/exam"))
    (folder / "exam.json").write_text(json.dumps(questions, indent=1) + "\n", encoding="utf-8")
    manifest = {"seed": seed, "megabytes": megabytes, "countries": len(mixture.countries.all), "nouns": len(mixture.nouns.all), "documents": counts}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def _documents(mixture, rng, characters, but_not):
    """Documents of that many characters in all, none of which is in but_not; and the set of their texts."""
    out, texts, size = [], set(), 0
    while size < characters:
        kind, text = mixture.document(rng)
        if text not in but_not:
            out.append((kind, text))
            texts.add(text)
            size += len(text)
    return out, frozenset(texts)


def _write(path, documents):
    with path.open("w", encoding="utf-8") as file:
        for kind, text in documents:
            file.write(json.dumps({"kind": kind, "text": text}) + "\n")
    return dict(sorted(Counter(kind for kind, _ in documents).items()))
