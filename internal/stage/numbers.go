package stage

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

func appendInts(b []byte, v []int32) []byte {
	b = slices.Grow(b, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func appendFloats(b []byte, v []float32) []byte {
	b = slices.Grow(b, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func decodeInts(b []byte) []int32 {
	v := make([]int32, len(b)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func decodeFloats(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func appendScored(b []byte, id int32, logprob float32) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(logprob))
}

func decodeScored(b []byte) (int32, float32) {
	return int32(binary.LittleEndian.Uint32(b)), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
}

// appendMicros writes a duration as microseconds, clipped to what 32 bits hold
// (71 minutes).
func appendMicros(b []byte, d time.Duration) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(min(max(d.Microseconds(), 0), math.MaxUint32)))
}
