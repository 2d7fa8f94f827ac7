package gatewaybench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hecate/internal/bench/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Requests of every kind get through the bare proxy as they get through directly,
// and another answer than the upstream's is noticed.
func TestEveryKindGetsThrough(t *testing.T) {
	up := httptest.NewServer(Upstream())
	defer up.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	h, err := Proxy(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(h)
	defer proxy.Close()
	lying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer lying.Close()
	for _, k := range kinds() {
		for _, url := range []string{up.URL, proxy.URL} {
			if took, err := load(t.Context(), client, url, k, 40); err != nil || took <= 0 {
				t.Errorf("%s: %v", k.name, err)
			}
		}
		if _, err := load(t.Context(), client, lying.URL, k, 1); err == nil {
			t.Errorf("%s: another answer went unnoticed", k.name)
		}
	}
	d, err := delays(t.Context(), client, proxy.URL, kinds()[1])
	if err != nil || len(d) != events {
		t.Errorf("%v, %v", d, err)
	}
}

// played is a run with the same processor time in each round.
func played(ours, bareCPU float64, direct ...float64) *Result {
	r := &Result{}
	for name, cpu := range map[string]float64{"direct": 0, "hecate": ours, bare: bareCPU} {
		row := &Row{Name: name, CPU: map[string]time.Duration{}, Wall: map[string]time.Duration{}, cpu: map[string][]float64{}, wall: map[string][]float64{}, After: 50 << 20}
		for _, k := range kinds() {
			for _, w := range direct {
				row.cpu[k.name] = append(row.cpu[k.name], cpu)
				row.wall[k.name] = append(row.wall[k.name], w)
			}
		}
		r.Rows = append(r.Rows, row)
	}
	r.conclude()
	return r
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		r    *Result
		held bool
		want measure.Verdict // on the first mark
	}{
		"as cheap":       {played(100, 100, 10, 11), true, measure.AimReached},
		"somewhat more":  {played(140, 100, 10, 11), true, measure.FloorReached},
		"too dear":       {played(160, 100, 10, 11), false, measure.BelowFloor},
		"too much noise": {played(100, 100, 10, 21), false, measure.NoVerdict},
	} {
		if c.r.Held() != c.held || c.r.Verdicts[0] != c.want {
			t.Errorf("%s: held %v, %v", name, c.r.Held(), c.r.Verdicts)
		}
		c.r.LeftOut = map[string]string{"nginx": errNotInstalled.Error()}
		var text strings.Builder
		if err := c.r.Print(&text); err != nil || !strings.Contains(text.String(), "nginx is left out: it is not installed") {
			t.Errorf("%v\n%s", err, &text)
		}
	}
}
