package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Quantise appends the values to dst, stored as kind: F32, F16, Q8_0 or Q4_0.
// The number of values must be a multiple of the kind's block.
func Quantise(dst []byte, kind Kind, values []float32) ([]byte, error) {
	b := kind.Block()
	if b == 0 || int64(len(values))%b != 0 {
		return dst, fmt.Errorf("gguf: quantise %d values as %s", len(values), kind)
	}
	switch kind {
	case F32:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	case F16:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint16(dst, toHalf(v))
		}
	case Q8_0:
		for i := 0; i < len(values); i += 32 {
			dst = q8Block(dst, values[i:i+32])
		}
	case Q4_0:
		for i := 0; i < len(values); i += 32 {
			dst = q4Block(dst, values[i:i+32])
		}
	default:
		return dst, fmt.Errorf("gguf: quantising to %s is not implemented", kind)
	}
	return dst, nil
}

// q8Block stores 32 values as a half-precision scale and signed bytes: scale
// is the largest magnitude over 127.
func q8Block(dst []byte, v []float32) []byte {
	var most float32
	for _, x := range v {
		most = max(most, abs(x))
	}
	scale := most / 127
	var inverse float32
	if scale != 0 {
		inverse = 1 / scale
	}
	dst = binary.LittleEndian.AppendUint16(dst, toHalf(scale))
	for _, x := range v {
		dst = append(dst, byte(int8(math.RoundToEven(float64(x*inverse)))))
	}
	return dst
}

// q4Block stores 32 values as a half-precision scale and 4-bit numbers offset
// by 8, value i and i+16 sharing a byte: scale maps the value of largest
// magnitude to -8.
func q4Block(dst []byte, v []float32) []byte {
	var extreme float32
	for _, x := range v {
		if abs(x) > abs(extreme) {
			extreme = x
		}
	}
	scale := extreme / -8
	var inverse float32
	if scale != 0 {
		inverse = 1 / scale
	}
	nibble := func(x float32) byte { return byte(min(15, max(0, int(x*inverse+8.5)))) }
	dst = binary.LittleEndian.AppendUint16(dst, toHalf(scale))
	for i := range 16 {
		dst = append(dst, nibble(v[i])|nibble(v[i+16])<<4)
	}
	return dst
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// toHalf rounds to IEEE 754 half precision, to nearest, ties to even.
func toHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits>>16) & 0x8000
	exp := int(bits>>23) & 0xff
	frac := bits & 0x7fffff
	switch {
	case exp == 0xff && frac != 0:
		return sign | 0x7e00
	case exp-127 > 15:
		return sign | 0x7c00
	case exp-127 < -25:
		return sign
	case exp-127 < -14: // subnormal in half precision
		shift := uint(-exp + 127 - 14 + 13)
		return sign + uint16(roundShift(frac|0x800000, shift))
	}
	// A carry out of the fraction correctly raises the exponent.
	return sign + uint16(exp-127+15)<<10 + uint16(roundShift(frac, 13))
}

// roundShift shifts right, rounding to nearest, ties to even.
func roundShift(v uint32, n uint) uint32 {
	half := uint32(1) << (n - 1)
	out, rest := v>>n, v&(half<<1-1)
	if rest > half || rest == half && out&1 == 1 {
		out++
	}
	return out
}
