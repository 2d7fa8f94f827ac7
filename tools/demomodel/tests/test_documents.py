import json
import random
import re
import tempfile
import unittest
from pathlib import Path

from corpus import echo, stories, sums
from corpus.build import build
from corpus.mixture import DOCUMENTS, Mixture
from tests import sources


class Build(unittest.TestCase):
    def build(self, folder, seed):
        base = Path(folder)
        build(base / "out", sources.factbook(base / "factbook"), sources.wordnet(base / "wordnet"), 0.2, seed)
        return {path.name: path.read_bytes() for path in sorted((base / "out").iterdir())}

    def test_same_seed_same_bytes_and_another_seed_other_bytes(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b, tempfile.TemporaryDirectory() as c:
            first, second, third = self.build(a, 1), self.build(b, 1), self.build(c, 2)
        self.assertEqual(list(first), ["exam.json", "heldout.jsonl", "manifest.json", "train.jsonl"])
        self.assertEqual(first, second)
        for name in first:
            self.assertNotEqual(first[name], third[name], name)

    def test_no_held_out_document_is_trained(self):
        with tempfile.TemporaryDirectory() as folder:
            files = self.build(folder, 3)
        texts = {name: {json.loads(line)["text"] for line in files[name].splitlines()} for name in ("train.jsonl", "heldout.jsonl")}
        self.assertTrue(texts["heldout.jsonl"])
        self.assertFalse(texts["train.jsonl"] & texts["heldout.jsonl"])


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.mixture = Mixture(sources.factbook(Path(folder) / "factbook"), sources.wordnet(Path(folder) / "wordnet"))
        rng = random.Random(11)
        cls.documents = [cls.mixture.document(rng) for _ in range(1500)]

    def test_all_kinds_occur(self):
        self.assertEqual({kind for kind, _ in self.documents}, set(DOCUMENTS))

    def test_chats_are_whole_turns_and_raw_texts_have_none(self):
        for kind, text in self.documents:
            if kind in ("story", "questions"):
                self.assertRegex(text, r"\A(<\|im_start\|>system\n[^<]+<\|im_end\|>\n)?(<\|im_start\|>user\n[^<]+<\|im_end\|>\n<\|im_start\|>assistant\n[^<]+<\|im_end\|>\n)+\Z")
            else:
                self.assertNotIn("<|im_", text)

    def test_no_template_is_left_open(self):
        for kind, text in self.documents:
            self.assertFalse(re.search(r"[\[\]{}]|  | [,.?!]| a [aeio]\w", text), f"{kind}: {text}")
            self.assertTrue(text.isascii())


class Sources(unittest.TestCase):
    def test_a_story_has_two_names_and_repeats_the_hero(self):
        rng = random.Random(2)
        for _ in range(500):
            story = stories.tell(rng)
            self.assertEqual(stories.names_in(story.text), {story.hero.name, story.friend.name})
            self.assertGreaterEqual(story.text.count(story.hero.name), 3, story.text)
            self.assertNotEqual(story.hero.name[0], story.friend.name[0])

    def test_sums_and_their_working_are_exact(self):
        rng = random.Random(4)
        for _ in range(300):
            for line in sums.drill(rng).splitlines():
                result, _, working = line.partition(": ")
                for part in [result, *filter(None, working.split(", "))]:
                    left, right = part.split(" = ")
                    self.assertEqual(eval(left), int(right), line)

    def test_working_adds_up_to_the_result(self):
        for plus in (True, False):
            for a in range(0, 100, 7):
                for b in range(0, a + 1, 3):
                    ones, tens = (int(p.split(" = ")[1]) for p in sums._working(plus, a, b).split(", "))
                    self.assertEqual(tens * 10 + ones % 10, a + b if plus else a - b)

    def test_echo_says_back(self):
        rng = random.Random(6)
        for _ in range(300):
            exchange = echo.exchange(rng)
            for word in exchange.answer.rstrip(".").split(", "):
                self.assertIn(word, exchange.question)
