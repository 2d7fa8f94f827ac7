package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"hecate/swarm"
)

// PlannerLease is the name of the lease whose holder plans.
const PlannerLease = "planner"

// A ReconcilerConfig says who plans from what.
type ReconcilerConfig struct {
	Store      Store
	Membership *Membership
	Planner    Planner
	Holder     string        // this gateway's name: who holds the lease
	LeaseTTL   time.Duration // 0: DefaultLeaseTTL
	Patience   Patience
	Log        *slog.Logger // nil: silent
}

// A Reconciler turns what is (records, membership) into what should be (the
// plan), whenever it holds the lease. It is level-triggered: each step looks
// at everything anew and writes only what differs.
type Reconciler struct {
	cfg     ReconcilerConfig
	leading atomic.Bool
	lastErr atomic.Pointer[error]
}

// NewReconciler returns a reconciler that does nothing until Run.
func NewReconciler(cfg ReconcilerConfig) *Reconciler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Patience = cfg.Patience.withDefaults()
	return &Reconciler{cfg: cfg}
}

// Leading reports whether this one plans now.
func (r *Reconciler) Leading() bool { return r.leading.Load() }

// Err is why the last step of planning failed; nil when it did not.
func (r *Reconciler) Err() error {
	if p := r.lastErr.Load(); p != nil {
		return *p
	}
	return nil
}

// Run competes for the lease and plans while it holds it, until ctx ends; then
// it gives the lease up.
func (r *Reconciler) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		lease, err := AcquireLease(ctx, r.cfg.Store, PlannerLease, r.cfg.Holder, r.cfg.LeaseTTL)
		if err != nil {
			return nil //nolint:nilerr // only ctx ends the waiting
		}
		r.leading.Store(true)
		r.cfg.Log.Info("this gateway plans now", "epoch", lease.Epoch())
		err = r.lead(ctx, lease)
		r.leading.Store(false)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		lease.Release(release)
		cancel()
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("planning stopped, starting anew", "error", err)
			pause(ctx, time.Second)
		}
	}
	return nil
}

// desk is what a leader sees, kept up to date by watches.
type desk struct {
	planning
	planRevision uint64 // of the plan in the store; 0: none
	memo         memo
	synced       int // watches that delivered everything
}

// A memo spares the planner what it was asked before: on the way to a plan the
// same question comes up whenever a node has loaded something.
type memo struct {
	nodes  []swarm.NodeProfile
	models []swarm.ModelSpec
	plan   *swarm.Plan
}

// planner answers from the memo while the previous plan is the one in it.
func (m *memo) planner(ask Planner) Planner {
	return func(nodes []swarm.NodeProfile, models []swarm.ModelSpec, previous *swarm.Plan) (*swarm.Plan, error) {
		if m.plan != nil && previous != nil && previous.Hash == m.plan.Hash &&
			reflect.DeepEqual(nodes, m.nodes) && reflect.DeepEqual(models, m.models) {
			return previous, nil
		}
		plan, err := ask(nodes, models, previous)
		if err == nil {
			*m = memo{nodes: nodes, models: models, plan: plan}
		}
		return plan, err
	}
}

// watches is how many watches must be complete before anything is decided.
const watches = 3

func (r *Reconciler) lead(ctx context.Context, lease *Lease) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nodes, err1 := r.cfg.Store.Watch(ctx, BucketNodes, "")
	models, err2 := r.cfg.Store.Watch(ctx, BucketModels, "")
	plans, err3 := r.cfg.Store.Watch(ctx, BucketPlan, PlanKey)
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("watching the store: %w", err)
	}
	views, stop := r.cfg.Membership.Watch()
	defer stop()
	d := &desk{planning: planning{
		began: time.Now(), epoch: lease.Epoch(), patience: r.cfg.Patience,
		nodes: map[string]*NodeRecord{}, models: map[string]*ModelRecord{},
	}}
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	due := time.Time{} // when to decide next; zero: not planned
	for {
		changed := false
		select {
		case <-ctx.Done():
			return nil
		case <-lease.Lost():
			return errors.New("the lease was lost")
		case u, ok := <-nodes:
			if changed = d.takeNode(u, r.cfg.Log); !ok {
				return errors.New("the store's watch ended")
			}
		case u := <-models:
			changed = d.takeModel(u, r.cfg.Log)
		case u := <-plans:
			changed = d.takePlan(u, r.cfg.Log)
		case v := <-views:
			changed = d.takeView(v)
		case <-timer.C:
			due = r.step(ctx, d)
		}
		if changed {
			due = earliest(due, time.Now().Add(r.cfg.Patience.Settle))
		}
		timer.Stop()
		if !due.IsZero() {
			timer.Reset(max(soonest, time.Until(due)))
		}
	}
}

// soonest is a timer's shortest wait. One of nothing is over before anybody waits
// for it, so that who waits runs it; where two do so at once, in fake time and under
// the race detector, the runtime crashes (Go 1.26).
const soonest = time.Nanosecond

// retryPlanning is the pause after a failed step.
const retryPlanning = 2 * time.Second

// step decides and writes once, and says when to look again.
func (r *Reconciler) step(ctx context.Context, d *desk) time.Time {
	if d.synced < watches || d.view == nil {
		return time.Time{}
	}
	d.now = time.Now()
	what, err := d.decide(d.memo.planner(r.cfg.Planner))
	if err == nil && what.document != nil {
		err = r.write(ctx, d, what.document)
	}
	for _, id := range d.departed() {
		err = errors.Join(err, depart(ctx, r.cfg.Store, id))
	}
	if errors.Is(err, ErrConflict) {
		err = nil // the watch brings what is there now, and with it the next step
	}
	r.note(err)
	if err != nil {
		return earliest(what.recheck, d.now.Add(retryPlanning))
	}
	return what.recheck
}

func (r *Reconciler) write(ctx context.Context, d *desk, doc *PlanDocument) error {
	data, err := Encode(doc)
	if err != nil {
		return err
	}
	var rev uint64
	if d.planRevision == 0 {
		rev, err = r.cfg.Store.Create(ctx, BucketPlan, PlanKey, data)
	} else {
		rev, err = r.cfg.Store.CompareAndSet(ctx, BucketPlan, PlanKey, data, d.planRevision)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", doc, err)
	}
	d.planRevision, d.previous, d.generation = rev, doc, doc.Generation
	r.cfg.Log.Info(describe(doc))
	return nil
}

func (r *Reconciler) note(err error) {
	old := r.Err()
	r.lastErr.Store(&err)
	if err != nil && (old == nil || old.Error() != err.Error()) {
		r.cfg.Log.Error("no new plan", "error", err)
	}
}

func (d *desk) sync(u Update) bool {
	if u.Synced {
		d.synced++
	}
	return u.Synced
}

func (d *desk) takeNode(u Update, log *slog.Logger) bool {
	if u.Key == "" {
		return d.sync(u)
	}
	if u.Deleted {
		delete(d.nodes, u.Key)
		return true
	}
	rec := new(NodeRecord)
	if err := Decode(u.Value, rec); err != nil {
		log.Warn("unreadable node record", "key", u.Key, "error", err)
		return false
	}
	old := d.nodes[rec.ID]
	d.nodes[rec.ID] = rec
	return !unchanged(old, rec)
}

func (d *desk) takeModel(u Update, log *slog.Logger) bool {
	if u.Key == "" {
		return d.sync(u)
	}
	if u.Deleted {
		delete(d.models, u.Key)
		return true
	}
	rec := new(ModelRecord)
	if err := Decode(u.Value, rec); err != nil {
		log.Warn("unreadable model record", "key", u.Key, "error", err)
		return false
	}
	d.models[rec.ID] = rec
	return true
}

// takePlan takes what the store holds, whoever wrote it: a plan of a deposed
// leader is the basis of ours, which replaces it.
func (d *desk) takePlan(u Update, log *slog.Logger) bool {
	switch {
	case u.Key == "":
		return d.sync(u)
	case u.Revision <= d.planRevision:
		return false // our own write, coming back
	case u.Deleted:
		d.planRevision, d.previous = 0, nil
		return true
	}
	doc := new(PlanDocument)
	if err := Decode(u.Value, doc); err != nil {
		log.Error("the plan in the store is unreadable and will be replaced", "error", err)
		d.planRevision, d.previous = u.Revision, nil
		return true
	}
	d.planRevision, d.previous, d.generation = u.Revision, doc, max(d.generation, doc.Generation)
	return true
}

// takeView notices who lives and who holds what; other telemetry plans
// nothing.
func (d *desk) takeView(v *View) bool {
	old := d.view
	d.view = v
	return old == nil || !sameLives(old.Members, v.Members) || !reflect.DeepEqual(old.holdings(), v.holdings())
}

func sameLives(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(x, y Member) bool { return x.ID == y.ID && x.Status == y.Status })
}
