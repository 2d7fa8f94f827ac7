"""Asks the whole exam and counts what is exactly right."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from corpus import exam

FACT_TOKENS, STORY_TOKENS = 96, 440
SHOWN = 6  # wrong answers that are kept per section


@dataclass
class Section:
    """Result of one section.  kept counts stories that never told a third name; None where there are no stories."""

    name: str
    right: int = 0
    of: int = 0
    kept: int | None = None
    wrong: list = field(default_factory=list)


def score(endpoint, questions, parallel=1, every=1, progress=lambda section: None):
    """Returns a Section per section of the exam.  every asks only each n-th question; parallel requests run at the same time."""
    out = []
    with ThreadPoolExecutor(parallel) as pool:
        for name, entries in questions.items():
            chosen = entries[::every]
            answers = pool.map(lambda entry: endpoint.ask(entry["question"], STORY_TOKENS if entry["must"] else FACT_TOKENS), chosen)
            out.append(_mark(name, chosen, answers))
            progress(out[-1])
    return out


def _mark(name, entries, answers):
    section = Section(name, of=len(entries))
    for entry, answer in zip(entries, answers):
        if exam.grade(entry, answer.text, answer.finished):
            section.right += 1
        elif len(section.wrong) < SHOWN:
            section.wrong.append({"question": entry["question"], "got": answer.text[:160], "wanted": (entry["accept"] or [", ".join(entry["must"])])[0][:160]})
        if entry["must"]:
            section.kept = (section.kept or 0) + exam.keeps_names(answer.text)
    return section


def table(sections):
    """The result as a Markdown table for the model card."""
    lines = ["| test | right | |", "|---|---|---|"]
    for section in sections:
        lines.append(_row(section.name, section.right, section.of))
        if section.kept is not None:
            lines.append(_row(section.name.split(",")[0] + ", no third name told", section.kept, section.of))
    return "\n".join(lines)


def _row(name, right, of):
    return f"| {name} | {right} / {of} | {100 * right / max(of, 1):.0f} % |"
