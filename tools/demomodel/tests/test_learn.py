"""Packing and network; skipped where numpy or torch is missing (they are not needed to build or test HECATE)."""

import importlib.util
import tempfile
import unittest
from pathlib import Path


def have(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


BOS, EOS, START, END, NEWLINE, ASSISTANT, USER = 1, 2, 3, 4, 15, 300, 301


def chat(*turns):
    """Token ids of a chat: (role, tokens) pairs."""
    ids = [BOS]
    for role, tokens in turns:
        ids += [START, role, NEWLINE, *tokens, END, NEWLINE]
    return ids


@unittest.skipUnless(have("numpy", "sentencepiece"), "needs numpy and sentencepiece")
class Packing(unittest.TestCase):
    def documents(self, count=200):
        import numpy

        rng = numpy.random.default_rng(1)
        return [numpy.concatenate(([BOS], rng.integers(400, 2000, rng.integers(8, 500)), [EOS])).astype(numpy.uint16) for _ in range(count)]

    def test_every_document_is_in_exactly_one_window_and_whole(self):
        from learn import packing

        documents = self.documents()
        packed = packing.pack(documents, ASSISTANT)
        found = []
        for length, windows in packed.items():
            self.assertEqual(windows.ids.shape[1], length + 1)
            for row in windows.ids.tolist():
                text = " ".join(map(str, row))
                found += [d.strip() for d in (" " + text).split(f" {BOS} ")[1:]]
        wanted = sorted(" ".join(map(str, d.tolist()[1:])) for d in documents)
        stripped = sorted(f.removesuffix(f" {EOS}" * (len(f.split()) - f.split().index(str(EOS)) - 1)) for f in found)
        self.assertEqual(stripped, wanted)

    def test_windows_are_well_filled(self):
        from learn import packing

        documents = self.documents(600)
        packed = packing.pack(documents, ASSISTANT)
        room = sum(windows.ids.size for windows in packed.values())
        self.assertGreater(sum(map(len, documents)) / room, 0.75)

    def test_only_the_assistants_words_count(self):
        import numpy
        from learn import packing

        ids = chat((USER, [500, 501]), (ASSISTANT, [502, 503]))
        filler = [numpy.array([BOS, *range(600, 1400), EOS], numpy.uint16)] * 9  # makes the chat's tokens rare
        packed = packing.pack([numpy.array(ids, numpy.uint16), *filler], ASSISTANT)
        weights = packed[256].weight[0].tolist()
        self.assertEqual([i for w, i in zip(weights, ids) if w], [502, 503, END])

    def test_a_rare_token_that_comes_again_weighs_more(self):
        import numpy
        from learn import packing

        ids = chat((USER, [500]), (ASSISTANT, [502, 500, 502]))
        filler = [numpy.array([BOS, *range(600, 1400), START, END, EOS], numpy.uint16)] * 9
        packed = packing.pack([numpy.array(ids, numpy.uint16), *filler], ASSISTANT, repeats=3.0)
        weights = {at: w for at, w in enumerate(packed[256].weight[0].tolist()) if w and ids[at] >= 500} if len(ids) else {}
        self.assertEqual(sorted(weights.values()), [1.0, 3.0, 3.0])


@unittest.skipUnless(have("numpy", "sentencepiece", "torch"), "needs torch")
class TheNetwork(unittest.TestCase):
    def setUp(self):
        import torch
        from learn.network import Network, Shape

        torch.set_num_threads(1)
        self.torch = torch
        self.network = Network(Shape(vocabulary=64, layers=2, width=32, heads=4, kv_heads=2, feed_forward=48), seed=3)

    def loss(self, ids, counted):
        torch = self.torch
        weight = torch.zeros(1, len(ids))
        weight[0, counted] = 1
        with torch.no_grad():
            return float(self.network(torch.tensor([ids]), weight)[0])

    def test_parameters_bear_ggufs_names(self):
        names = set(self.network.state_dict())
        self.assertIn("blk.1.attn_output.weight", names)
        self.assertLessEqual({"token_embd.weight", "output_norm.weight", "blk.0.ffn_gate.weight"}, names)

    def test_the_demo_models_size(self):
        from learn.network import Network, Shape

        self.assertEqual(sum(p.numel() for p in Network(Shape()).parameters()), 2_624_640)

    def test_documents_in_one_window_do_not_see_each_other(self):
        generator = self.torch.Generator().manual_seed(4)
        first, second = (self.torch.randint(5, 64, (n,), generator=generator).tolist() for n in (150, 40))
        alone = self.loss([BOS, *second], list(range(1, 41)))
        together = self.loss([BOS, *first, BOS, *second], list(range(152, 192)))
        self.assertAlmostEqual(alone, together, places=4)

    def test_no_token_sees_a_later_one(self):
        generator = self.torch.Generator().manual_seed(5)
        ids = [BOS, *self.torch.randint(5, 64, (300,), generator=generator).tolist()]
        before = self.loss(ids, [100, 127, 128, 129, 200])
        changed = ids[:201] + [7] * 100
        self.assertAlmostEqual(before, self.loss(changed, [100, 127, 128, 129, 200]), places=5)

    def test_a_step_by_step_attention_gives_the_same(self):
        torch = self.torch
        block, length = self.network.blk[0], 140
        from learn.network import _masks, _rotate, _rotation

        ids = torch.randint(5, 64, (1, length), generator=torch.Generator().manual_seed(6))
        x = torch.randn(1, length, 32, generator=torch.Generator().manual_seed(7))
        rotation = _rotation(self.network.shape, length)
        with torch.no_grad():
            got = block._attend(x, rotation, _masks(ids, torch.float32))
            heads = [linear(x).view(1, length, -1, 8).transpose(1, 2) for linear in (block.attn_q, block.attn_k, block.attn_v)]
            q, k, v = _rotate(heads[0], rotation), _rotate(heads[1], rotation), heads[2]
            rows = torch.zeros(1, length, 32)
            for head in range(4):
                for t in range(length):
                    weights = (q[0, head, t] @ k[0, head // 2, : t + 1].T / 8**0.5).softmax(-1)
                    rows[0, t, head * 8 : head * 8 + 8] = weights @ v[0, head // 2, : t + 1]
            self.assertLess(float((got - block.attn_output(rows)).abs().max()), 1e-5)


@unittest.skipUnless(have("numpy", "sentencepiece", "torch"), "needs torch")
class EndToEnd(unittest.TestCase):
    """A few steps on a few texts: same seed, same weights; the exported file has the loss that training saw."""

    def test_train_twice_export_and_measure(self):
        import torch
        from corpus.build import build
        from learn import encoding, tokenizer
        from learn.export import export
        from learn.loss import of_gguf
        from learn.network import Shape
        from learn.training import Options, Trainer
        from tests import sources

        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            data = base / "data"
            build(data, sources.factbook(base / "factbook"), sources.wordnet(base / "wordnet"), 0.3, 1)
            tokenizer.train(data, pieces=600)
            encoding.encode_all(data)
            options = Options(tokens=0.012, warmup_steps=2, fp32=True)
            small = Shape(vocabulary=600, layers=2, width=64, heads=2, kv_heads=1, feed_forward=96)
            losses = [Trainer(data, base / run, options, shape=small).fit() for run in ("a", "b")]
            weights = [torch.load(base / run / "checkpoint.pt")["weights"] for run in ("a", "b")]
            self.assertEqual(losses[0], losses[1])
            for name, tensor in weights[0].items():
                self.assertTrue(torch.equal(tensor, weights[1][name]), name)
            for kind, allowed in (("f16", 1e-3), ("q8_0", 1e-2)):
                export(base / "a" / "checkpoint.pt", data, kind, base / "m.gguf", "a notice")
                self.assertAlmostEqual(of_gguf(base / "m.gguf", data), losses[0], delta=allowed)


if __name__ == "__main__":
    unittest.main()
