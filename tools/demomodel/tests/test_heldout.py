"""No exam question may be answerable from having been seen."""

import random
import re
import tempfile
import unittest
from pathlib import Path

from corpus import countries, everyday, exam, heldout, nouns, product, product_topics, smalltalk, stories, sums, unknown
from corpus.exchange import Wordings
from corpus.grammar import every
from corpus.mixture import Mixture
from corpus.typed import plain
from tests import sources

DOCUMENTS = 2500


def questions(text):
    """What the user says in a ChatML document."""
    return [plain(q) for q in re.findall(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", text, re.S)]


class Wording(unittest.TestCase):
    """The templates themselves: no unseen wording can be made by a trained one."""

    def assert_apart(self, trained, unseen, what):
        def forms(templates):
            return set().union(*({plain(text) for text in every(template)} for template in templates))

        self.assertFalse(forms(trained) & forms(unseen), f"{what}: wordings that are trained and in the exam")
        self.assertTrue(unseen, f"{what} has no unseen wording")

    def test_lists_of_wordings(self):
        lists = [(f"{module.__name__}.{name}", value) for module in (countries, everyday, nouns, stories, sums) for name, value in vars(module).items() if isinstance(value, Wordings)]
        lists += [(answer, wordings) for _, wordings, answer in everyday.TABLES]
        self.assertGreater(len(lists), 15)
        for what, wordings in lists:
            self.assert_apart(wordings.trained, wordings.unseen, what)

    def test_single_facts_and_small_talk(self):
        for trained, unseen, answer in everyday.SINGLE:
            self.assert_apart(trained, (unseen,), answer)
        self.assert_apart([q for t in smalltalk.TOPICS for q in t.trained], [q for t in smalltalk.TOPICS for q in t.unseen], "small talk")
        self.assert_apart(unknown.TRAINED, unknown.UNSEEN, "unknown")

    def test_product_topics(self):
        trained = [w for t in product_topics.TOPICS for w in product.wordings(t, False)]
        unseen = [w for t in product_topics.TOPICS for w in product.wordings(t, True)]
        self.assert_apart(trained, unseen, "product")
        self.assertGreater(len(trained) / len(product_topics.TOPICS), 20, "a topic should have dozens of wordings")


class Generated(unittest.TestCase):
    """The documents as they come out."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.mixture = Mixture(sources.factbook(Path(folder) / "factbook"), sources.wordnet(Path(folder) / "wordnet"))
        rng = random.Random(5)
        cls.texts = [cls.mixture.document(rng)[1] for _ in range(DOCUMENTS)]
        cls.exam = exam.build(cls.mixture, random.Random(6))

    def test_no_question_of_the_exam_was_trained(self):
        trained = {q for text in self.texts for q in questions(text)}
        for section, entries in self.exam.items():
            if "unseen" in section:
                asked = {plain(entry["question"]) for entry in entries}
                self.assertFalse(asked & trained, section)

    def test_no_held_out_pair_of_numbers_in_any_text(self):
        found = [(a, op, b) for text in self.texts for a, op, b in re.findall(r"\b(\d+) ?([+-]) ?(\d+)\b(?! \+| -)", text)]
        self.assertGreater(len(found), 1000)
        leaked = {row for row in found if heldout.is_held_out_sum(row[1] == "+", int(row[0]), int(row[2]))}
        self.assertFalse(leaked)

    def test_the_exam_asks_only_held_out_numbers_where_it_says_so(self):
        for section in ("sums, unseen numbers", "sums, unseen numbers and wording"):
            for entry in self.exam[section]:
                a, op, b = re.match(r"(\d+) ([+-]) (\d+) =", entry["answer"]).groups()
                self.assertTrue(heldout.is_held_out_sum(op == "+", int(a), int(b)), entry)

    def test_stories_about_held_out_pairs_only_in_the_exam(self):
        rng = random.Random(8)
        for exam_story in (False, True):
            for _ in range(300):
                story = stories.tell(rng, exam=exam_story)
                self.assertEqual(heldout.is_held_out_story(story.hero.kind, story.thing.noun), exam_story)

    def test_about_one_pair_in_twelve_is_held_out(self):
        pairs = [(a, b) for a in range(100) for b in range(a, 100) if b > heldout.SMALL]
        share = sum(heldout.is_held_out_sum(True, a, b) for a, b in pairs) / len(pairs)
        self.assertAlmostEqual(share, 1 / heldout.SHARE, delta=0.02)

    def test_exam_sections_are_filled(self):
        for section, entries in self.exam.items():
            self.assertTrue(entries, section)
            for entry in entries:
                right = entry["accept"] or [entry["answer"]]
                self.assertTrue(exam.grade(entry, right[0], True), entry)
                self.assertFalse(exam.grade(entry, right[0], False), "an answer that did not end by itself is not right")
                self.assertFalse(exam.grade(entry, "I like trains.", True), entry)
