import random
import unittest

from corpus import typed
from corpus.grammar import choose, every, expand, fill, with_article


class Grammar(unittest.TestCase):
    def test_nested_choices_give_every_text(self):
        self.assertEqual(every("[a|b [c|d]] e"), {"a e", "b c e", "b d e"})
        rng = random.Random(1)
        self.assertEqual({choose(rng, "[a|b [c|d]] e") for _ in range(200)}, every("[a|b [c|d]] e"))

    def test_an_empty_choice_leaves_no_gap(self):
        self.assertEqual(every("A [little|] story[, please|]."), {"A little story, please.", "A little story.", "A story, please.", "A story."})

    def test_a_capital_slot_starts_a_sentence(self):
        self.assertEqual(fill("{Thing} and {thing}.", thing="the owl"), "The owl and the owl.")

    def test_an_unknown_slot_is_an_error(self):
        with self.assertRaises(KeyError):
            fill("{nobody}", thing="x")

    def test_same_seed_same_text(self):
        texts = {expand(random.Random(7), "[a|b|c] [d|e|f] [g|h]") for _ in range(5)}
        self.assertEqual(len(texts), 1)

    def test_articles(self):
        for noun, wanted in (("fox", "a fox"), ("owl", "an owl"), ("honest fox", "an honest fox"), ("hour", "an hour"), ("unit", "a unit"), ("uncle", "an uncle")):
            self.assertEqual(with_article(noun), wanted)


class AsTyped(unittest.TestCase):
    def test_every_form_is_plainly_the_same_question(self):
        for question in ("What is HECATE?", "I want a story.", "HECATE?", "Tell me what an owl is."):
            rng = random.Random(3)
            for _ in range(300):
                self.assertEqual(typed.plain(typed.as_typed(rng, question)), typed.plain(question))

    def test_most_questions_stay_as_they_are(self):
        rng = random.Random(3)
        same = sum(typed.as_typed(rng, "What is HECATE?") == "What is HECATE?" for _ in range(1000))
        self.assertGreater(same, 500)
