package weights

import (
	"encoding/json"
	"strings"
	"testing"
)

// A manifest that contradicts itself is refused: its spans become offsets.
func TestManifestsThatAreRefused(t *testing.T) {
	good := func() *Manifest {
		return &Manifest{Version: manifestVersion, Size: 100, Layers: 1, Spans: []Span{
			{Name: "header", Piece: "header", Bytes: 10}, {Name: "a", Piece: "0", Offset: 10, Bytes: 90},
		}}
	}
	if err := good().validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*Manifest)
		want  string
	}{
		"another version":    {func(m *Manifest) { m.Version = 2 }, "version 2"},
		"a strange piece":    {func(m *Manifest) { m.Spans[1].Piece = "../0" }, "no piece"},
		"past the end":       {func(m *Manifest) { m.Spans[1].Bytes = 91 }, "91 bytes at 10"},
		"overlapping":        {func(m *Manifest) { m.Spans[1].Offset = 9 }, "at 9, after 10"},
		"no bytes":           {func(m *Manifest) { m.Spans[1].Bytes = 0 }, "0 bytes"},
		"numbers that turn":  {func(m *Manifest) { m.Spans[1].Offset = 1<<63 - 1 }, "bytes at"},
		"less than nothing":  {func(m *Manifest) { m.Spans[0].Offset = -5 }, "at -5"},
		"negative file size": {func(m *Manifest) { m.Size = -1 }, "within -1"},
	} {
		m := good()
		c.spoil(m)
		if err := m.validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Whatever a manifest says, what is accepted stays within the file.
func FuzzManifests(f *testing.F) {
	f.Add([]byte(`{"version":1,"size":100,"layers":1,"spans":[{"name":"a","piece":"0","offset":10,"bytes":90}]}`))
	f.Add([]byte(`{"version":1,"size":9223372036854775807,"spans":[{"piece":"0","offset":9223372036854775807,"bytes":1}]}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil {
			return
		}
		for _, s := range m.Spans {
			if s.Offset < 0 || s.Bytes <= 0 || s.Offset+s.Bytes > m.Size || s.Offset+s.Bytes < 0 {
				t.Errorf("%+v in a file of %d", s, m.Size)
			}
		}
		m.Need(0, min(m.Layers, 10)-1)
		if _, err := json.Marshal(m); err != nil {
			t.Error(err)
		}
	})
}
