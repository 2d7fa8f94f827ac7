package cli

import (
	"testing"
	"time"
)

func TestTimesForPeople(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration]string{
		720 * time.Hour: "in 30 days", 24 * time.Hour: "in 24 hours", 90 * time.Minute: "in 90 minutes", 20 * time.Second: "in less than a minute", -time.Second: "expired",
	} {
		if got := until(now.Add(left + time.Second/2)); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
	if got := until(time.Time{}); got != "never" {
		t.Errorf("%q, want never", got)
	}
}
