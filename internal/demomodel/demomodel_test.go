package demomodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The golden answers were computed on exactly these bytes.
func TestGGUFIsTheFileOfTheGoldens(t *testing.T) {
	raw, err := os.ReadFile("golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Files map[string]struct {
			SHA256 string `json:"sha256"`
			Bytes  int    `json:"bytes"`
		} `json:"files"`
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	want := golden.Files["demo-q8_0.gguf"]
	sum := sha256.Sum256(GGUF())
	if got := hex.EncodeToString(sum[:]); got != want.SHA256 || len(GGUF()) != want.Bytes {
		t.Errorf("embedded model: %d bytes, sha256 %s; goldens were made on %d bytes, %s", len(GGUF()), got, want.Bytes, want.SHA256)
	}
	if !bytes.HasPrefix(GGUF(), []byte("GGUF")) {
		t.Error("embedded model does not start with GGUF")
	}
}

func TestCardSaysItIsADemoAndCarriesTheNotice(t *testing.T) {
	for _, want := range []string{"It is a demo", "Copyright 2006 by Princeton University"} {
		if !strings.Contains(Card(), want) {
			t.Errorf("model card lacks %q", want)
		}
	}
	if !strings.Contains(License(), "Princeton University") {
		t.Error("licence text lacks its owner")
	}
}
