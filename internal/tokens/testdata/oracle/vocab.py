"""Builds the small byte-level BPE vocabulary of the tests (bpe.json) and, for
each way of cutting words, a GGUF without tensors that llama.cpp can load.

    python3 vocab.py OUT     (needs the package regex; writes ../bpe.json and OUT/*.gguf)

tokenize.mjs then lets llama.cpp encode texts.json with each of them."""
import collections
import json
import pathlib
import struct
import sys

import regex

HERE = pathlib.Path(__file__).parent
OUT = pathlib.Path(sys.argv[1])
TEXTS = json.loads((HERE / "texts.json").read_text())
PRES = ["llama-bpe", "dbrx", "qwen2", "gpt-2", "smollm", "tekken", "gpt-4o", "deepseek-v3", "default", "falcon"]
CONTROL = ["<|bos|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>"]
DEFINED = ["<think>", "</think>", "  ", "    ", "<b>", "abc", "abcd"]
RESERVED = {*CONTROL, *DEFINED, "\u0120Zyxwvut", "Quetzal", "\u0120\u0120\u0120"}  # tokens that no merge makes

# GPT-2's table of bytes as printable characters
shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
table, spare = {}, 0x100
for b in range(256):
    if b in shown:
        table[b] = chr(b)
    else:
        table[b] = chr(spare)
        spare += 1


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        if word[i:i + 2] == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def train(words, rounds, merges):
    """Adds the most frequent pair to merges, rounds times."""
    for pair in merges:
        words = [merged(w, pair) for w in words]
    for _ in range(rounds):
        pairs = collections.Counter(p for w in words for p in zip(w, w[1:]) if p[0] + p[1] not in RESERVED)
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        words = [merged(w, best) for w in words]


def shape(text):
    return tuple(table[b] for b in text.encode())


# First ordinary merges within words; then merges of whole texts, across words,
# so that every place where a text is cut, or not, shows in the ids.
cut = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
card = (HERE / "../../../demomodel/MODEL_CARD.md").resolve().read_text()[:6000]
merges = []
train([shape(w) for text in [*TEXTS, card] for w in cut.findall(text)], 300, merges)
train([shape(text) for text in TEXTS], 2000, merges)
tokens = [table[b] for b in range(256)] + list(dict.fromkeys(a + b for a, b in merges))
# whole words that no merge reaches: only vocabularies that take words whole use them
tokens += [w for w in ("\u0120Zyxwvut", "Quetzal", "\u0120\u0120\u0120") if w not in tokens]
types = [1] * len(tokens) + [3] * len(CONTROL) + [4] * len(DEFINED)
bos = len(tokens)
tokens += CONTROL + DEFINED
vocab = {"tokens": tokens, "types": types, "merges": [a + " " + b for a, b in merges], "bos": bos, "eos": bos + 2}
(HERE / "../bpe.json").resolve().write_text(json.dumps(vocab, ensure_ascii=False, indent=0) + "\n")


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def strings(values):
    return struct.pack("<IQ", 8, len(values)) + b"".join(map(text, values))


for pre in PRES:
    keys = [
        entry("general.architecture", 8, text("llama")),
        entry("tokenizer.ggml.model", 8, text("gpt2")),
        entry("tokenizer.ggml.pre", 8, text(pre)),
        entry("tokenizer.ggml.tokens", 9, strings(tokens)),
        entry("tokenizer.ggml.token_type", 9, struct.pack("<IQ", 5, len(types)) + struct.pack(f"<{len(types)}i", *types)),
        entry("tokenizer.ggml.merges", 9, strings(vocab["merges"])),
        entry("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", bos)),
        entry("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", bos + 2)),
    ]
    (OUT / f"{pre}.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys))
print(len(tokens), "tokens,", len(merges), "merges")
