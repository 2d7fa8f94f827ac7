package randmodel

import (
	"bytes"
	"path/filepath"
	"testing"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
)

func TestWrittenModelsAreValid(t *testing.T) {
	for _, kind := range []gguf.Kind{gguf.F32, gguf.F16, gguf.Q8_0, gguf.Q4_0} {
		for _, tied := range []bool{false, true} {
			c := Tiny(kind, 7)
			c.Tied, c.RopeFactors = tied, tied
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := WriteFile(path, c); err != nil {
				t.Fatal(err)
			}
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatalf("%s tied=%v: %v", kind, tied, err)
			}
			s, err := arch.Describe(f)
			if err != nil {
				t.Fatalf("%s tied=%v: %v", kind, tied, err)
			}
			if s.Info.TiedHead != tied || s.Info.Layers != c.Layers || s.Info.Vocab != c.Vocab {
				t.Errorf("%s tied=%v: read back as %+v", kind, tied, s.Info)
			}
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	write := func(seed uint64) []byte {
		var b bytes.Buffer
		if err := Write(&b, Tiny(gguf.Q4_0, seed)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if !bytes.Equal(write(1), write(1)) {
		t.Error("the same seed gave different files")
	}
	if bytes.Equal(write(1), write(2)) {
		t.Error("different seeds gave the same file")
	}
}

func BenchmarkWrite135M(b *testing.B) {
	for b.Loop() {
		if err := WriteFile(filepath.Join(b.TempDir(), "m.gguf"), SmolLM135M(1)); err != nil {
			b.Fatal(err)
		}
	}
}
