package control

import (
	"context"
	"fmt"
	"log/slog"
)

// FollowPlan calls fn with the current plan and with every newer one, until
// ctx ends. It is level-triggered: while fn runs, newer plans replace each
// other, and only the newest is delivered next. A plan of a deposed leader (a
// lower epoch than one seen before) is refused and logged; one that cannot be
// read is logged, and the one before stays.
func FollowPlan(ctx context.Context, store Store, log *slog.Logger, fn func(*PlanDocument)) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates, err := store.Watch(ctx, BucketPlan, PlanKey)
	if err != nil {
		return fmt.Errorf("watching the plan: %w", err)
	}
	newest := make(chan *PlanDocument, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d := range newest {
			fn(d)
		}
	}()
	var current *PlanDocument
	for u := range updates {
		if d := readPlan(u, current, log); d != nil {
			current = d
			offerNewest(newest, d)
		}
	}
	close(newest)
	<-done
	return nil
}

// readPlan returns the plan of an update when it replaces the current one.
func readPlan(u Update, current *PlanDocument, log *slog.Logger) *PlanDocument {
	if u.Synced || u.Deleted {
		return nil
	}
	d := new(PlanDocument)
	if err := Decode(u.Value, d); err != nil {
		log.Error("the plan in the store is unreadable", "revision", u.Revision, "error", err)
		return nil
	}
	if !d.Newer(current) {
		if d.Epoch < current.Epoch {
			log.Warn("refused a plan of a deposed planner", "plan", d.String(), "current", current.String())
		}
		return nil
	}
	return d
}
