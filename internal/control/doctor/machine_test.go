package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClocks(t *testing.T) {
	for skew, want := range map[time.Duration]Status{
		0: OK, time.Second: OK, -9 * time.Second: OK, 11 * time.Second: Warn, -time.Minute: Warn, time.Hour: Fail, -time.Hour: Fail,
	} {
		f := clock("gw", skew)
		if f.Status != want {
			t.Errorf("%s: %s", skew, f)
		}
		if want == Fail && !strings.Contains(f.Detail, map[bool]string{true: "ahead of", false: "behind"}[skew > 0]) {
			t.Errorf("%s: %s", skew, f)
		}
	}
}

func TestMemoryIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(path, []byte("MemTotal: 16 kB\nMemAvailable:    2048 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if free, err := freeMemory(path); err != nil || free != 2<<20 {
		t.Errorf("%d, %v", free, err)
	}
}
