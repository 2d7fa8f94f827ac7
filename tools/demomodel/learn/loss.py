"""Held-out loss of a GGUF file as it is shipped: its (quantised) weights are read back and run through our own network in fp32."""

import torch

from gguf.reader import read

from . import encoding, packing
from . import tokenizer as vocabulary
from .network import Network, Shape
from .training import heldout_loss


def of_gguf(path, data, threads=1, most=None):
    """Mean loss in nats per counted token over data/heldout.jsonl.

    The file must have been made with the tokenizer of the same data folder; another one is refused."""
    torch.set_num_threads(threads)
    file, tokenizer = read(path), vocabulary.load(data)
    if file.metadata["tokenizer.ggml.tokens"] != [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size())]:
        raise ValueError(f"{path} has another vocabulary than {data}/tokenizer.model")
    network = Network(_shape(file.metadata))
    network.load_state_dict({name: torch.tensor(tensor.values()).view(tensor.shape) for name, tensor in file.tensors.items()})
    windows = packing.pack(encoding.load(data, "heldout"), tokenizer.encode("assistant")[0])
    return heldout_loss(network, windows, most)


def _shape(metadata):
    """The network's sizes from the file's metadata."""
    m = {key.removeprefix("llama."): value for key, value in metadata.items() if key.startswith("llama.")}
    return Shape(
        vocabulary=m["vocab_size"], context=m["context_length"], layers=m["block_count"], width=m["embedding_length"], heads=m["attention.head_count"],
        kv_heads=m["attention.head_count_kv"], feed_forward=m["feed_forward_length"], rope_base=m["rope.freq_base"], norm_epsilon=m["attention.layer_norm_rms_epsilon"],
    )  # fmt: skip
