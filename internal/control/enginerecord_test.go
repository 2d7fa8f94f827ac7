package control

import (
	"errors"
	"strings"
	"testing"
)

func TestEngineAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"gpu:8000": "http://gpu:8000/v1", "http://gpu": "http://gpu/v1", "https://api.example.com/openai/v1/": "https://api.example.com/openai/v1",
		"10.0.0.7": "http://10.0.0.7/v1", "[::1]:8000": "http://[::1]:8000/v1", "http://gpu:8000/": "http://gpu:8000/v1",
	} {
		if got, err := EngineURL(in); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "http://", "ftp://x", "http://user:secret@x", "http://x?key=1", "http://x#y", "http://:", "http://x:", "://", strings.Repeat("x", 2000)} {
		got, err := EngineURL(bad)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
}

func TestEngineRecords(t *testing.T) {
	good := EngineRecord{ID: "gpu1", URL: "http://gpu/v1", Aliases: map[string]string{"llama": "org/Llama 3:8b"}, KeyEnv: "GPU_KEY", Parallel: 4}
	data, err := Encode(&good)
	if err != nil {
		t.Fatal(err)
	}
	back := new(EngineRecord)
	if err := Decode(data, back); err != nil || back.Aliases["llama"] != "org/Llama 3:8b" {
		t.Errorf("%+v, %v", back, err)
	}
	for name, change := range map[string]func(*EngineRecord){
		"name":      func(r *EngineRecord) { r.ID = "a/b" },
		"url":       func(r *EngineRecord) { r.URL = "gpu" },
		"alias":     func(r *EngineRecord) { r.Aliases = map[string]string{"": "x"} },
		"own name":  func(r *EngineRecord) { r.Aliases = map[string]string{"x": "a\nb"} },
		"variable":  func(r *EngineRecord) { r.KeyEnv = "A B" },
		"two keys":  func(r *EngineRecord) { r.PassKey = true },
		"parallel":  func(r *EngineRecord) { r.Parallel = -1 },
		"silence":   func(r *EngineRecord) { r.Silence = -1 },
		"firstbyte": func(r *EngineRecord) { r.FirstByte = maxEngineWait + 1 },
	} {
		r := good
		change(&r)
		if _, err := Encode(&r); !errors.Is(err, ErrBadDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
