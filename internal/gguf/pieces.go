package gguf

import (
	"strconv"
	"strings"
)

// Where a tensor belongs when a model is cut into layers.
const (
	PieceEmbedding = -1 // with layer 0
	PieceHead      = -2 // with the last layer
	PieceShared    = -3 // with every layer: rope factors
	PieceOther     = -4 // not part of the text model
)

// Piece says where a tensor belongs: its layer, or one of the constants.
func Piece(name string) int {
	group, rest, _ := strings.Cut(name, ".")
	switch group {
	case "blk":
		number, _, ok := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); ok && err == nil && n >= 0 && strconv.Itoa(n) == number {
			return n
		}
	case "token_embd", "token_embd_norm", "token_types", "position_embd":
		return PieceEmbedding
	case "output":
		if rest != noHead {
			return PieceHead
		}
	case "output_norm":
		return PieceHead
	case "rope_freqs", "rope_factors_long", "rope_factors_short":
		return PieceShared
	}
	return PieceOther
}

// noHead is the rest of the name of a marker tensor, output.none: some readers
// take a missing output group for a tied head and would load the embedding a
// second time.
const noHead = "none"
