package gguf

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// WriteShard writes a valid GGUF file with the metadata of src and the tensors
// of layers first..last, the embedding if first is 0 and the head if last is
// the model's last layer; a tied head is written as output.weight. data is
// the file src was read from. extra entries, for keys whose absence different
// readers take differently, are added where src lacks them.
func WriteShard(w io.Writer, src *File, data io.ReaderAt, first, last int, extra ...Entry) error {
	m, err := src.Info()
	if err != nil {
		return err
	}
	if !m.Holds(first, last) {
		return src.Fault(fmt.Sprintf("layers %d..%d", first, last), nil, "not all in this file")
	}
	entries, err := src.entries(data, extra)
	if err != nil {
		return err
	}
	var items []Item
	for _, t := range src.Tensors {
		if keep(Piece(t.Name), first, last, m.Layers) {
			items = append(items, src.item(t, data))
		}
	}
	switch embedding, _ := src.Tensor("token_embd.weight"); {
	case last == m.Layers-1 && m.TiedHead:
		head := src.item(embedding, data)
		head.Name = "output.weight"
		items = append(items, head)
	case first == 0 && last < m.Layers-1:
		items = append(items, Floats("output."+noHead, []float32{0}, 1))
	}
	return Write(w, entries, items)
}

// keep says whether a piece goes into the shard of a range.
func keep(piece, first, last, layers int) bool {
	switch piece {
	case PieceEmbedding:
		return first == 0
	case PieceHead:
		return last == layers-1
	case PieceShared:
		return true
	}
	return piece >= first && piece <= last
}

// entries copies the metadata as it stands and adds what is missing. The
// alignment is left out: shards have the default one.
func (f *File) entries(data io.ReaderAt, extra []Entry) ([]Entry, error) {
	var out []Entry
	for _, kv := range f.KVs {
		if kv.Key == "general.alignment" {
			continue
		}
		raw := make(Raw, kv.size)
		if _, err := data.ReadAt(raw, kv.at); err != nil {
			return nil, fmt.Errorf("gguf: %s: read %s: %w", f.Name, kv.Key, err)
		}
		out = append(out, Entry{kv.Key, raw})
	}
	for _, e := range extra {
		if !f.Has(e.Key) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (f *File) item(t Tensor, data io.ReaderAt) Item {
	return Item{Name: t.Name, Kind: t.Kind, Dims: t.Dims, Data: func(w io.Writer) error {
		_, err := io.Copy(w, f.Section(t, data))
		return err
	}}
}

// Section is the data of one tensor.
func (f *File) Section(t Tensor, data io.ReaderAt) *io.SectionReader {
	return io.NewSectionReader(data, f.DataOffset+t.Offset, t.Bytes())
}

// Sums returns the SHA-256 of every tensor's data, by name.
func Sums(path string) (map[string][sha256.Size]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	defer r.Close()
	sums := make(map[string][sha256.Size]byte, len(f.Tensors))
	h := sha256.New()
	for _, t := range f.Tensors {
		h.Reset()
		if _, err := io.Copy(h, f.Section(t, r)); err != nil {
			return nil, fmt.Errorf("gguf: %s: read tensor %s: %w", path, t.Name, err)
		}
		sums[t.Name] = [sha256.Size]byte(h.Sum(nil))
	}
	return sums, nil
}
