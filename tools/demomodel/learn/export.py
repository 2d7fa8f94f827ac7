"""Checkpoint to GGUF, with everything that another program needs to run it."""

import torch

from gguf import kinds
from gguf.writer import Writer

from . import tokenizer as vocabulary
from .network import Shape

# Message turns, each closed by <|im_end|>; the tokenizer puts <s> in front.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
MATRICES = {"f16": (kinds.F16, 1), "q8_0": (kinds.Q8_0, 7)}  # tensor kind of matrices, and llama.cpp's number for the file type
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # token types


def export(checkpoint, data, kind, path, notice, licence="apache-2.0"):
    """Writes the checkpoint with matrices of kind ("f16" or "q8_0"); notice is the licence text that must go along.  Returns bytes."""
    found = torch.load(checkpoint, map_location="cpu")
    shape, weights = Shape(**found["shape"]), found["weights"]
    writer = Writer()
    _general(writer, weights, MATRICES[kind][1], notice, licence)
    _architecture(writer, shape)
    _vocabulary(writer, vocabulary.load(data))
    for name, tensor in weights.items():  # the network's names are GGUF's; the head is tied, so there is no output.weight
        values = tensor.float().contiguous().flatten().tolist()
        writer.add_tensor(name, tuple(tensor.shape), MATRICES[kind][0] if tensor.dim() == 2 else kinds.F32, values)
    return writer.write(path)


def _general(writer, weights, file_type, notice, licence):
    parameters = sum(tensor.numel() for tensor in weights.values())
    writer.add("general.architecture", kinds.STRING, "llama")
    writer.add("general.type", kinds.STRING, "model")
    writer.add("general.name", kinds.STRING, "hecate-demo")
    writer.add("general.size_label", kinds.STRING, f"{parameters / 1e6:.1f}M")
    writer.add("general.description", kinds.STRING, "Tiny demo model of HECATE, trained from scratch on generated text, World Factbook data (public domain) and WordNet 3.0 glosses. It makes mistakes.")
    writer.add("general.license", kinds.STRING, licence)
    writer.add("general.license.name", kinds.STRING, f"{licence}, with the WordNet 3.0 notice")
    writer.add("general.license.notice", kinds.STRING, notice)
    writer.add_array("general.languages", kinds.STRING, ["en"])
    writer.add("general.file_type", kinds.UINT32, file_type)
    writer.add("general.quantization_version", kinds.UINT32, 2)


def _architecture(writer, shape):
    numbers = {
        "context_length": shape.context, "embedding_length": shape.width, "block_count": shape.layers, "feed_forward_length": shape.feed_forward,
        "attention.head_count": shape.heads, "attention.head_count_kv": shape.kv_heads, "attention.key_length": shape.head_width,
        "attention.value_length": shape.head_width, "rope.dimension_count": shape.head_width, "vocab_size": shape.vocabulary,
    }  # fmt: skip
    for name, number in numbers.items():
        writer.add(f"llama.{name}", kinds.UINT32, number)
    writer.add("llama.rope.freq_base", kinds.FLOAT32, shape.rope_base)
    writer.add("llama.attention.layer_norm_rms_epsilon", kinds.FLOAT32, shape.norm_epsilon)


def _vocabulary(writer, tokenizer):
    ids = range(tokenizer.vocab_size())
    writer.add("tokenizer.ggml.model", kinds.STRING, "llama")
    writer.add("tokenizer.ggml.pre", kinds.STRING, "default")
    writer.add_array("tokenizer.ggml.tokens", kinds.STRING, [tokenizer.id_to_piece(i) for i in ids])
    writer.add_array("tokenizer.ggml.scores", kinds.FLOAT32, [tokenizer.get_score(i) for i in ids])
    writer.add_array("tokenizer.ggml.token_type", kinds.INT32, [_type(tokenizer, i) for i in ids])
    writer.add("tokenizer.ggml.bos_token_id", kinds.UINT32, vocabulary.BOS)
    writer.add("tokenizer.ggml.eos_token_id", kinds.UINT32, vocabulary.IM_END)
    writer.add("tokenizer.ggml.eot_token_id", kinds.UINT32, vocabulary.IM_END)
    writer.add_array("tokenizer.ggml.eos_token_ids", kinds.INT32, [vocabulary.EOS, vocabulary.IM_END])
    writer.add("tokenizer.ggml.unknown_token_id", kinds.UINT32, 0)
    writer.add("tokenizer.ggml.add_bos_token", kinds.BOOL, True)
    writer.add("tokenizer.ggml.add_eos_token", kinds.BOOL, False)
    writer.add("tokenizer.ggml.add_space_prefix", kinds.BOOL, False)
    writer.add("tokenizer.chat_template", kinds.STRING, CHAT_TEMPLATE)


def _type(tokenizer, i):
    if tokenizer.is_unknown(i):
        return UNKNOWN
    if tokenizer.is_control(i):
        return CONTROL
    return BYTE if tokenizer.is_byte(i) else NORMAL
