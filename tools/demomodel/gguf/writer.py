"""Writes a GGUF file."""

import os
import struct
from pathlib import Path

from . import kinds, pack


class Writer:
    """Collects metadata and tensors in order, then writes the file at once."""

    def __init__(self):
        self._keys, self._pairs, self._tensors = set(), [], []

    def add(self, key, kind, value):
        """Adds one metadata value of a plain kind or a string."""
        self._pair(key, struct.pack("<I", kind) + _value(kind, value))

    def add_array(self, key, kind, values):
        """Adds a list whose elements are all of one kind."""
        self._pair(key, struct.pack("<IIQ", kinds.ARRAY, kind, len(values)) + b"".join(_value(kind, v) for v in values))

    def add_tensor(self, name, shape, kind, values):
        """Adds a tensor.  shape is (rows, columns) or (values,), values its numbers row by row."""
        size = 1
        for dimension in shape:
            size *= dimension
        if len(values) != size or shape[-1] % kind.block:
            raise ValueError(f"tensor {name}: {len(values)} values do not make rows of {kind.name} in the shape {shape}")
        self._tensors.append((name, shape, kind, pack.encode(kind, values)))

    def write(self, path):
        """Writes the file and returns its size in bytes; a crash in the middle leaves no half file under that name."""
        head = bytearray(kinds.MAGIC + struct.pack("<IQQ", kinds.VERSION, len(self._tensors), len(self._pairs)))
        head += b"".join(self._pairs)
        body = bytearray()
        for name, shape, kind, data in self._tensors:
            dimensions = struct.pack(f"<{len(shape)}Q", *reversed(shape))  # GGUF names the fastest dimension first
            head += _string(name) + struct.pack("<I", len(shape)) + dimensions + struct.pack("<IQ", kind.number, len(body))
            body += data + bytes(kinds.padding(len(data)))
        head += bytes(kinds.padding(len(head)))
        new = Path(f"{path}.new")
        new.write_bytes(head + body)
        os.replace(new, path)
        return len(head) + len(body)

    def _pair(self, key, encoded):
        if key in self._keys:
            raise ValueError(f"metadata key {key} twice")
        self._keys.add(key)
        self._pairs.append(_string(key) + encoded)


def _value(kind, value):
    return _string(value) if kind == kinds.STRING else struct.pack("<" + kinds.CODES[kind], value)


def _string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data
