package randmodel

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"

	"hecate/internal/gguf"
)

// blockLayout is where the half-precision numbers of a kind's block are, and
// how large a stored integer times the first of them gets, as root mean
// square, when the rest of the block is random bits.
type blockLayout struct {
	scale int     // offset of the scale
	least int     // offset of the scale of the minimum; -1: none
	rms   float64 // of scale 1
}

// The K kinds have blocks of 256 in groups with scales of their own. Random
// bits make valid blocks, if only the half-precision numbers are sane.
// The minimum is given a scale that makes the mean about 0.
var blockLayouts = map[gguf.Kind]blockLayout{
	gguf.Q4_K: {scale: 0, least: 2, rms: 200},
	gguf.Q5_K: {scale: 0, least: 2, rms: 400},
	gguf.Q6_K: {scale: 208, least: -1, rms: 1370},
}

// leastShare is the minimum's scale over the block's: half of the largest
// stored integer.
var leastShare = map[gguf.Kind]float64{gguf.Q4_K: 7.5, gguf.Q5_K: 15.5}

// fillBlocks writes rows of random blocks of a K kind.
func fillBlocks(w io.Writer, r *rand.Rand, kind gguf.Kind, in, out int64) error {
	l := blockLayouts[kind]
	size := int(kind.Bytes(kind.Block()))
	scale := 1 / (l.rms * math.Sqrt(float64(in)))
	row := make([]byte, kind.Bytes(in))
	for range out {
		for i := range row {
			row[i] = byte(r.Uint32())
		}
		for at := 0; at < len(row); at += size {
			one := []float32{float32(scale)}
			half, err := gguf.Quantise(nil, gguf.F16, one)
			if err != nil {
				return err
			}
			copy(row[at+l.scale:], half)
			if l.least >= 0 {
				one[0] *= float32(leastShare[kind])
				if half, err = gguf.Quantise(nil, gguf.F16, one); err != nil {
					return err
				}
				copy(row[at+l.least:], half)
			}
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return nil
}

// fillBrain writes rows in BF16: the upper half of a float32.
func fillBrain(w io.Writer, r *rand.Rand, in, out int64) error {
	half := float32(math.Sqrt(3 / float64(in)))
	row := make([]byte, 0, 2*in)
	for range out {
		row = row[:0]
		for range in {
			v := half * (2*r.Float32() - 1)
			row = binary.LittleEndian.AppendUint16(row, uint16(math.Float32bits(v)>>16))
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return nil
}
