package openai

import (
	"runtime"
	"strings"
	"testing"
)

// What a body costs to read grows with its length, not with the square of it.
func TestManyPartsCostNoMoreThanTheirBytes(t *testing.T) {
	const parts = 20_000
	body := []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}` + strings.Repeat(`,{"type":"text","text":"x"}`, parts-1) + `]}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, fault := DecodeChat(body)
	runtime.ReadMemStats(&after)
	if fault != nil || len(r.Messages[0].Content.Text) != parts {
		t.Fatal(fault)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > uint64(50*len(body)) {
		t.Errorf("%d bytes were allocated for a body of %d", spent, len(body))
	}
}
