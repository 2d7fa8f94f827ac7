package control

import (
	"fmt"
	"strconv"

	"hecate/swarm"
)

// A Piece is a part of a model's file that travels and is kept by itself: one
// layer, or what belongs to no single layer.
type Piece struct {
	Name  string `json:"name"`   // a layer's number, or one of the names below
	Bytes int64  `json:"bytes"`  // more than 0
	Sum   string `json:"sha256"` // of the bytes, hex
}

// The pieces that are no layers.
const (
	PieceManifest  = "manifest"  // which tensors each piece has, and their hashes; not a part of the file
	PieceHeader    = "header"    // the file's metadata
	PieceEmbedding = "embedding" // belongs to the first layer; to the last too where it is the head
	PieceHead      = "head"      // belongs to the last layer
	PieceShared    = "shared"    // belongs to every layer: rope factors
)

// maxPieces is one for each layer and each of the names above.
const maxPieces = maxLayers + 5

// ValidatePieceName accepts the names of pieces and nothing else: they become
// file names.
func ValidatePieceName(name string) error {
	switch name {
	case PieceManifest, PieceHeader, PieceEmbedding, PieceHead, PieceShared:
		return nil
	}
	if n, err := strconv.Atoi(name); err != nil || n < 0 || n >= maxLayers || strconv.Itoa(n) != name {
		return fmt.Errorf("%w: %.40q is no piece of a model", ErrBadName, name)
	}
	return nil
}

// ValidateHash accepts 64 lower-case hex digits and nothing else: hashes become
// file names.
func ValidateHash(hash string) error {
	ok := len(hash) == 64
	for i := 0; ok && i < len(hash); i++ {
		ok = hash[i] >= '0' && hash[i] <= '9' || hash[i] >= 'a' && hash[i] <= 'f'
	}
	if !ok {
		return fmt.Errorf("%w: %.70q is no SHA-256 in hex", ErrBadName, hash)
	}
	return nil
}

func (p Piece) validate() error {
	var f faults
	f.add(ValidatePieceName(p.Name))
	f.add(ValidateHash(p.Sum))
	f.check(p.Bytes > 0, "piece %q of %d bytes", p.Name, p.Bytes)
	return f.join()
}

// Stored says which pieces of one model's file a node has on disk and gives to
// its neighbours.
type Stored struct {
	Hash   string             `json:"hash"` // of the model's content
	Layers []swarm.LayerRange `json:"layers,omitempty"`
	Others []string           `json:"others,omitempty"` // pieces that are no layers
}

// Has says whether a piece is among them.
func (s Stored) Has(piece string) bool {
	n, err := strconv.Atoi(piece)
	for _, r := range s.Layers {
		if err == nil && r.Contains(n) {
			return true
		}
	}
	for _, o := range s.Others {
		if o == piece {
			return true
		}
	}
	return false
}

func (s Stored) validate() error {
	var f faults
	f.add(ValidateHash(s.Hash))
	f.check(len(s.Layers) <= maxLayers && len(s.Others) <= maxPieces, "more pieces than a model has")
	for _, r := range s.Layers {
		f.check(r.First >= 0 && r.First <= r.Last && r.Last < maxLayers, "stored layers %d to %d are no range", r.First, r.Last)
	}
	for _, o := range s.Others {
		f.add(ValidatePieceName(o))
	}
	return f.join()
}

// Received is what a node was sent of one model's file by one sender, since its
// process started.
type Received struct {
	Hash string        `json:"hash"`           // of the model's content
	From string        `json:"from,omitempty"` // a node; "": a gateway
	Runs []ReceivedRun `json:"runs"`
}

// ReceivedRun is what came for a range of layers. What belongs to no single layer
// counts for the one that needed it first.
type ReceivedRun struct {
	Layers swarm.LayerRange `json:"layers"`
	Bytes  int64            `json:"bytes"` // as they arrived, also those that were thrown away again
}

func (r Received) validate() error {
	var f faults
	f.add(ValidateHash(r.Hash))
	if r.From != "" {
		f.add(ValidateNodeName(r.From))
	}
	f.check(len(r.Runs) <= maxLayers, "more runs of layers than a model has layers")
	for _, run := range r.Runs {
		f.check(run.Layers.First >= 0 && run.Layers.First <= run.Layers.Last && run.Layers.Last < maxLayers && run.Bytes >= 0,
			"%d bytes of layers %d to %d", run.Bytes, run.Layers.First, run.Layers.Last)
	}
	return f.join()
}
