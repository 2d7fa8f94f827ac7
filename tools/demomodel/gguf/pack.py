"""Numbers to tensor bytes and back, for F32, F16 and Q8_0.

Q8_0: blocks of 32 values share one F16 scale d = max|x| / 127; each value is stored as the integer nearest to x / d (halves away from
zero), as ggml's reference quantiser does.  So a value is off by at most d/2 from rounding to an integer, plus 127 * d * 2**-11 from
rounding d to F16 (2**-24 / 2 * 127 where d is subnormal): see worst_error.
"""

import struct
from array import array

from . import kinds

_BLOCK = struct.Struct("<e32b")


def encode(kind, values):
    """The bytes of values (floats) as a tensor kind."""
    return _ENCODERS[kind.number](values)


def decode(kind, data):
    """The values of a tensor's bytes, as an array of floats."""
    return _DECODERS[kind.number](data)


def worst_error(block):
    """An upper bound of |x - decoded x| over a block of 32 values, from the format's own rounding (see above)."""
    scale = max(map(abs, block)) / 127
    return scale * 0.5 + 127 * max(scale * 2**-11, 2**-25) + 1e-12


def _encode_f32(values):
    return struct.pack(f"<{len(values)}f", *values)


def _encode_f16(values):
    return struct.pack(f"<{len(values)}e", *values)


def _encode_q8_0(values):
    kinds.Q8_0.bytes_of(len(values))
    out = bytearray()
    for start in range(0, len(values), 32):
        block = values[start : start + 32]
        scale = max(max(block), -min(block)) / 127
        inverse = 1 / scale if scale else 0.0
        out += _BLOCK.pack(scale, *(int(x * inverse + 0.5) if x >= 0 else -int(0.5 - x * inverse) for x in block))
    return bytes(out)


def _decode_f32(data):
    return array("f", struct.unpack(f"<{len(data) // 4}f", data))


def _decode_f16(data):
    return array("f", struct.unpack(f"<{len(data) // 2}e", data))


def _decode_q8_0(data):
    out = array("f")
    for scale, *numbers in _BLOCK.iter_unpack(data):
        out.extend(scale * n for n in numbers)
    return out


_ENCODERS = {kinds.F32.number: _encode_f32, kinds.F16.number: _encode_f16, kinds.Q8_0.number: _encode_q8_0}
_DECODERS = {kinds.F32.number: _decode_f32, kinds.F16.number: _decode_f16, kinds.Q8_0.number: _decode_q8_0}
