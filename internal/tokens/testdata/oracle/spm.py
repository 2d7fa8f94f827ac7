"""Writes GGUFs without tensors that carry the demo model's SentencePiece
vocabulary in variations, for tokenize.mjs:

    python3 spm.py OUT && node tokenize.mjs OUT      (OUT named spm)

prefix: a space is put in front (add_space_prefix left out: the default).
defined: three pieces are user-defined tokens, and there is no space in front."""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
OUT = pathlib.Path(sys.argv[1])
data = (HERE / "../../../demomodel/demo-q8_0.gguf").resolve().read_bytes()
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
DEFINED = ["\u2581the", "ing", "."]


def end_of(kind, at):
    if kind == 8:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind == 9:
        element, n = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(n):
            at = end_of(element, at)
        return at
    return at + SIZES[kind]


def metadata():
    at, keys = 24, {}
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        n = struct.unpack_from("<Q", data, at)[0]
        key = data[at + 8:at + 8 + n].decode()
        at += 8 + n
        kind = struct.unpack_from("<I", data, at)[0]
        stop = end_of(kind, at + 4)
        keys[key] = data[at:stop]
        at = stop
    return keys


def strings(raw):
    n, at, out = struct.unpack_from("<Q", raw, 8)[0], 16, []
    for _ in range(n):
        size = struct.unpack_from("<Q", raw, at)[0]
        out.append(raw[at + 8:at + 8 + size].decode())
        at += 8 + size
    return out


def write(name, keys):
    body = b"".join(struct.pack("<Q", len(k.encode())) + k.encode() + v for k, v in keys.items())
    (OUT / f"{name}.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + body)


keys = metadata()
prefix = dict(keys)
del prefix["tokenizer.ggml.add_space_prefix"]
write("prefix", prefix)

defined = dict(keys)
tokens = strings(defined["tokenizer.ggml.tokens"])
types = bytearray(defined["tokenizer.ggml.token_type"])
for t in DEFINED:
    struct.pack_into("<i", types, 16 + 4 * tokens.index(t), 4)
defined["tokenizer.ggml.token_type"] = bytes(types)
write("defined", defined)
write("plain", keys)
