import tempfile
import unittest

from corpus import countries, nouns
from tests import sources


class Countries(unittest.TestCase):
    def test_reads_corrects_and_leaves_out(self):
        with tempfile.TemporaryDirectory() as folder:
            found = {c.name: c for c in countries.load(sources.factbook(folder))}
        self.assertNotIn("Gibraltar", found)
        self.assertEqual((found["Italy"].capital, found["Italy"].region, found["Italy"].continent), ("Rome", "Southern Europe", "Europe"))
        self.assertEqual(found["Egypt"].continent, "Africa")
        self.assertEqual((str(found["Bahamas"]), found["Bahamas"].capital, found["Bahamas"].region), ("the Bahamas", "Nassau", "the Caribbean"))
        self.assertEqual(found["Myanmar"].capital, "Naypyidaw")

    def test_an_empty_folder_is_named(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(FileNotFoundError, "factbook"):
            countries.load(folder)


class Nouns(unittest.TestCase):
    def test_reads_and_filters(self):
        with tempfile.TemporaryDirectory() as folder:
            found = {n.word: n.definition for n in nouns.load(sources.wordnet(folder))}
        self.assertEqual(found["bridge"], "A bridge is a structure that allows people to cross a river.")
        self.assertEqual(found["buckle"], "A buckle is a fastener that fastens together two ends of a belt.")
        self.assertEqual(found["water"], "Water is a clear liquid that falls as rain.")
        self.assertEqual(found["owl"], "An owl is a bird that hunts at night.")
        self.assertLessEqual(set(found), {"bridge", "buckle", "water", "owl", "hour"}, "reserved, unfit and rare words are left out")
