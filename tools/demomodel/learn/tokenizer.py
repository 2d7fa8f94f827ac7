"""The vocabulary: SentencePiece BPE with byte fallback, 2048 pieces, digits one by one, no space put in front of a text.

    <unk> 0   <s> 1   </s> 2   <|im_start|> 3   <|im_end|> 4   256 bytes 5..260   then the learned pieces
"""

import io
import itertools
import json
import re
from pathlib import Path

import sentencepiece

VOCABULARY = 2048
BOS, EOS, IM_START, IM_END, FIRST_BYTE = 1, 2, 3, 4, 5
NEWLINE = FIRST_BYTE + 10
CONTROLS = ("<|im_start|>", "<|im_end|>")
ROLES = ("user", "assistant", "system")

_CONTROL = re.compile("(" + "|".join(map(re.escape, CONTROLS)) + ")")
_DOCUMENTS = 25_000  # enough to learn two thousand pieces from


def texts(path):
    """The texts of a .jsonl file of the data folder, one by one."""
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def train(data, pieces=VOCABULARY):
    """Learns the vocabulary from data/train.jsonl and writes data/tokenizer.model."""
    data, model = Path(data), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_sentences(data / "train.jsonl"), model_writer=model, model_type="bpe", vocab_size=pieces,
        byte_fallback=True, split_digits=True, add_dummy_prefix=False, remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,
        normalization_rule_name="identity", character_coverage=1.0, unk_id=0, bos_id=BOS, eos_id=EOS, pad_id=-1, control_symbols=list(CONTROLS),
        max_sentence_length=20_000, shuffle_input_sentence=False, num_threads=1, minloglevel=1,
    )  # fmt: skip
    (data / "tokenizer.model").write_bytes(model.getvalue())
    return load(data)


def _sentences(path):
    """The lines to learn from: no control tokens in them, and the names of the roles often enough to become pieces."""
    for text in itertools.islice(texts(path), _DOCUMENTS):
        yield from (line for line in _CONTROL.sub("\n", text).splitlines() if line)
    for _ in range(4000):
        yield from ROLES


def load(data):
    """The tokenizer of a data folder."""
    made = sentencepiece.SentencePieceProcessor(model_file=str(Path(data) / "tokenizer.model"))
    found = [made.piece_to_id(piece) for piece in ("<unk>", "<s>", "</s>", *CONTROLS, "<0x00>")]
    if found != [0, BOS, EOS, IM_START, IM_END, FIRST_BYTE]:
        raise ValueError(f"tokenizer.model numbers its special pieces {found}")
    return made


def encode(tokenizer, text):
    """Token ids of a document: <s>, the text with its control tokens, and </s> after a raw text.

    Control tokens are cut out first, so that no piece reaches across them; that is what inference does too."""
    ids = [BOS]
    for part in _CONTROL.split(text):
        if part in CONTROLS:
            ids.append(IM_START if part == CONTROLS[0] else IM_END)
        elif part:
            ids += tokenizer.encode(part)
    return ids if text.startswith(CONTROLS[0]) else [*ids, EOS]
