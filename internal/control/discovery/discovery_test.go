package discovery

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"hecate/internal/control/controltest"
)

func TestAGatewayIsFoundOnTheNetworkByItsSwarm(t *testing.T) {
	if !controltest.InNetwork(t) {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	tag := Tag([32]byte{0xab, 0xcd})
	for _, a := range []Announcement{
		{Gateway: "gateway", Tag: tag, Port: 7443}, {Gateway: "gateway", Tag: "0123456789abcdef", Port: 7444},
	} {
		wg.Go(func() { Announce(ctx, a, slog.New(slog.DiscardHandler)) })
	}
	var found []string
	for len(found) == 0 { // the announcement starts beside us
		var err error
		if found, err = Find(ctx, tag, 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range found {
		if !strings.HasSuffix(a, ":7443") || !strings.HasPrefix(a, "10.99.0.") && !strings.Contains(a, "fe80") {
			t.Errorf("found %s", a)
		}
	}
	if other, err := Find(ctx, "ffffffffffffffff", 300*time.Millisecond); err != nil || len(other) != 0 {
		t.Errorf("a swarm that is not there: %v, %v", other, err)
	}
	cancel()
	wg.Wait()
	if gone, err := Find(t.Context(), tag, 300*time.Millisecond); err != nil || len(gone) != 0 {
		t.Errorf("after the gateway went: %v, %v", gone, err)
	}
}
