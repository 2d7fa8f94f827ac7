package tail

import (
	"strings"
	"testing"
)

func TestTheEndIsKept(t *testing.T) {
	var w Writer
	for range 10 {
		_, _ = w.Write([]byte(strings.Repeat("x", Size/2)))
	}
	_, _ = w.Write([]byte("the end"))
	s := w.String()
	if len(s) != Size || !strings.HasSuffix(s, "xthe end") {
		t.Errorf("%d bytes ending in %q", len(s), s[max(0, len(s)-10):])
	}
}
