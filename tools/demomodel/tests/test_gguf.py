import random
import struct
import tempfile
import unittest
from pathlib import Path

from gguf import kinds, pack
from gguf.reader import read
from gguf.writer import Writer

SHIPPED = Path(__file__).resolve().parents[3] / "internal/demomodel/demo-q8_0.gguf"


class RoundTrip(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "tiny.gguf"

    def test_metadata(self):
        writer = Writer()
        writer.add("a.text", kinds.STRING, "naïve 東京")
        writer.add("a.number", kinds.UINT32, 4_000_000_000)
        writer.add("a.signed", kinds.INT32, -5)
        writer.add("a.float", kinds.FLOAT32, 0.5)
        writer.add("a.flag", kinds.BOOL, False)
        writer.add_array("a.words", kinds.STRING, ["", "x", "<0x0A>"])
        writer.add_array("a.scores", kinds.FLOAT32, [0.0, -1.5])
        size = writer.write(self.path)
        self.assertEqual(size, self.path.stat().st_size)
        wanted = {"a.text": "naïve 東京", "a.number": 4_000_000_000, "a.signed": -5, "a.float": 0.5, "a.flag": False, "a.words": ["", "x", "<0x0A>"], "a.scores": [0.0, -1.5]}
        self.assertEqual(read(self.path).metadata, wanted)

    def test_tensors_of_all_kinds(self):
        rng, writer, written = random.Random(1), Writer(), {}
        for name, shape, kind in (("norm", (5,), kinds.F32), ("odd", (3, 7), kinds.F16), ("matrix", (4, 64), kinds.Q8_0), ("last", (1, 32), kinds.Q8_0)):
            size = shape[0] * (shape[1] if len(shape) > 1 else 1)
            written[name] = [rng.gauss(0, 0.1) for _ in range(size)]
            writer.add_tensor(name, shape, kind, written[name])
        writer.add("general.architecture", kinds.STRING, "llama")
        writer.write(self.path)
        tensors = read(self.path).tensors
        self.assertEqual([(t.name, t.shape) for t in tensors.values()], [("norm", (5,)), ("odd", (3, 7)), ("matrix", (4, 64)), ("last", (1, 32))])
        for name, values in written.items():
            self.assertEqual(tensors[name].data, pack.encode(tensors[name].kind, values))
            for x, y in zip(values, tensors[name].values(), strict=True):
                self.assertAlmostEqual(x, y, delta=0.003)

    def test_the_first_dimension_in_the_file_is_the_row_length(self):
        writer = Writer()
        writer.add_tensor("m", (2, 32), kinds.F32, [0.0] * 64)
        writer.write(self.path)
        at = self.path.read_bytes().index(b"\x01\0\0\0\0\0\0\0m") + 9
        self.assertEqual(struct.unpack_from("<IQQ", self.path.read_bytes(), at), (2, 32, 2))

    def test_wrong_use_is_refused(self):
        writer = Writer()
        writer.add("k", kinds.UINT32, 1)
        with self.assertRaisesRegex(ValueError, "twice"):
            writer.add("k", kinds.UINT32, 2)
        with self.assertRaisesRegex(ValueError, "shape"):
            writer.add_tensor("t", (2, 3), kinds.F32, [0.0] * 5)
        with self.assertRaisesRegex(ValueError, "Q8_0"):
            writer.add_tensor("t", (2, 48), kinds.Q8_0, [0.0] * 96)

    def test_foreign_and_short_files_are_refused(self):
        self.path.write_bytes(b"PK\x03\x04" + bytes(100))
        with self.assertRaises(ValueError):
            read(self.path)
        writer = Writer()
        writer.add_tensor("t", (4, 32), kinds.F32, [1.0] * 128)
        writer.write(self.path)
        self.path.write_bytes(self.path.read_bytes()[:-64])
        with self.assertRaisesRegex(ValueError, "outside"):
            read(self.path)


class Quantiser(unittest.TestCase):
    def assert_within_bound(self, block):
        decoded = pack.decode(kinds.Q8_0, pack.encode(kinds.Q8_0, block))
        bound = pack.worst_error(block)
        for x, y in zip(block, decoded, strict=True):
            self.assertLessEqual(abs(x - y), bound, (x, y, max(map(abs, block))))

    def test_error_bound_over_sizes_and_shapes(self):
        rng = random.Random(9)
        for exponent in range(-9, 5):
            for _ in range(60):
                self.assert_within_bound([rng.gauss(0, 10.0**exponent) for _ in range(32)])
                self.assert_within_bound([rng.uniform(-1, 1) * 10.0**exponent for _ in range(31)] + [10.0**exponent * rng.choice((-40, 40))])

    def test_zeros_stay_zero(self):
        self.assertEqual(pack.encode(kinds.Q8_0, [0.0] * 32), bytes(34))

    def test_extremes_use_the_whole_range_and_halves_go_away_from_zero(self):
        data = pack.encode(kinds.Q8_0, [127.0, -127.0, 0.5, -0.5, 1.4999, -2.5] + [0.0] * 26)
        self.assertEqual(struct.unpack("<e32b", data)[:7], (1.0, 127, -127, 1, -1, 1, -3))

    def test_values_on_the_grid_survive(self):
        rng = random.Random(10)
        for scale in (2.0**-10, 0.125, 1.0):
            block = [scale * q for q in [127] + [rng.randrange(-127, 128) for _ in range(31)]]
            self.assertEqual(list(pack.decode(kinds.Q8_0, pack.encode(kinds.Q8_0, block))), block)

    def test_a_wrong_length_is_refused(self):
        with self.assertRaises(ValueError):
            pack.encode(kinds.Q8_0, [0.0] * 33)


class ShippedModel(unittest.TestCase):
    """The model in the repository was written by another program: our reader must agree with it, and our quantiser with its bytes."""

    @unittest.skipUnless(SHIPPED.exists(), "no shipped model")
    def test_reads_and_requantises_to_the_same_bytes(self):
        file = read(SHIPPED)
        self.assertEqual(file.metadata["llama.block_count"], 12)
        self.assertIs(file.metadata["tokenizer.ggml.add_space_prefix"], False)
        self.assertNotIn("output.weight", file.tensors)
        for name in ("blk.0.attn_q.weight", "blk.11.ffn_down.weight"):
            tensor = file.tensors[name]
            self.assertEqual(pack.encode(tensor.kind, tensor.values()), tensor.data, name)
