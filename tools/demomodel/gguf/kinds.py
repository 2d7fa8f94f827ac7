"""Numbers of the format: kinds of metadata values and of tensors."""

from dataclasses import dataclass

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
CODES = {UINT32: "I", INT32: "i", FLOAT32: "f", BOOL: "?"}  # struct codes of the plain kinds


@dataclass(frozen=True)
class TensorKind:
    """A tensor kind stores values in blocks of block values, each of size bytes."""

    number: int
    name: str
    block: int
    size: int

    def bytes_of(self, count):
        """Bytes of count values; a ValueError when they do not fill whole blocks."""
        if count % self.block:
            raise ValueError(f"{self.name} stores blocks of {self.block} values, and {count} is no multiple")
        return count // self.block * self.size


F32 = TensorKind(0, "F32", 1, 4)
F16 = TensorKind(1, "F16", 1, 2)
Q8_0 = TensorKind(8, "Q8_0", 32, 34)
TENSOR_KINDS = {kind.number: kind for kind in (F32, F16, Q8_0)}


def padding(size):
    """Bytes that are missing to the next multiple of ALIGNMENT."""
    return -size % ALIGNMENT
