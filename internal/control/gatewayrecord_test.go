package control_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
)

// keeping is the gateways that keep their records, each until it is stopped.
func keeping(ctx context.Context, store control.Store, name string, leads *atomic.Bool) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	go control.KeepGateway(ctx, store, control.GatewayRecord{Name: name, Join: []string{name + ":7443"}}, leads.Load, slog.New(slog.DiscardHandler))
	return stop
}

func gatewaysNow(t *testing.T, store control.Store) (names []string) {
	t.Helper()
	list, err := control.Gateways(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range list {
		names = append(names, g.Name)
	}
	return names
}

// A gateway that is gone is remembered for a week, as long as somebody leads; those
// that live stay, and one that comes back is there at once.
func TestGatewaysThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := controltest.NewStore()
		var leads, not atomic.Bool
		want := func(when string, names ...string) {
			t.Helper()
			synctest.Wait()
			if got := gatewaysNow(t, store); !slices.Equal(got, names) {
				t.Errorf("%s: %v are known, want %v", when, got, names)
			}
		}
		stopOne, stopTwo := keeping(t.Context(), store, "one", &leads), keeping(t.Context(), store, "two", &not)
		defer stopOne()
		old, err := control.Encode(&control.GatewayRecord{Name: "older", Join: []string{"older:7443"}})
		if err == nil {
			_, err = store.Create(t.Context(), control.BucketGateways, "older", old)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		stopTwo()
		time.Sleep(control.GatewayLife + 2*control.GatewayRenewal)
		want("nobody leads", "older", "one", "two")
		leads.Store(true)
		time.Sleep(control.GatewayRenewal)
		want("somebody leads", "older", "one")
		time.Sleep(control.GatewayLife - time.Hour)
		want("almost a week after it led first", "older", "one")
		stopTwo = keeping(t.Context(), store, "two", &not)
		defer stopTwo()
		want("two is back", "older", "one", "two")
		time.Sleep(3 * time.Hour)
		want("one that never said when it was written is a week old", "one", "two")
		time.Sleep(3 * control.GatewayLife)
		want("weeks later", "one", "two")
	})
}
