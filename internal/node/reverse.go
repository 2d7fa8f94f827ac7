package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
	"hecate/pool"
)

// reverser connects the data plane to gateways that cannot reach this node, as
// long as they ask for it.
type reverser struct {
	server      *pool.Server
	credentials *identity.Credentials
	log         *slog.Logger
	wires       *Hole // that the connections fall into on command; nil: none
	mu          struct {
		sync.Mutex
		ctx   context.Context // nil: not running
		tasks map[string]*reverseTask
	}
	wg sync.WaitGroup
}

// reverseTask keeps connections to one gateway.
type reverseTask struct {
	addresses []string
	stop      context.CancelFunc
	end       *time.Timer
}

// run lets gateways be connected to until ctx ends, and waits for the end of it.
func (r *reverser) run(ctx context.Context) {
	r.mu.Lock()
	r.mu.ctx, r.mu.tasks = ctx, map[string]*reverseTask{}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	for _, t := range r.mu.tasks {
		t.end.Stop()
	}
	r.mu.ctx = nil
	r.mu.Unlock()
	r.wg.Wait()
}

// dial is the command of a gateway that cannot reach us.
func (r *reverser) dial(_ context.Context, args json.RawMessage) (any, error) {
	var in control.DialRequest
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	if err := control.ValidateNodeName(in.Gateway); err != nil || len(in.Addresses) == 0 {
		return nil, errors.Join(err, fmt.Errorf("gateway %q waits at %d addresses", in.Gateway, len(in.Addresses)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.ctx == nil {
		return nil, errors.New("the data plane does not run")
	}
	if t := r.mu.tasks[in.Gateway]; t != nil {
		if slices.Equal(t.addresses, in.Addresses) && t.end.Reset(control.DialFor) {
			return nil, nil
		}
		t.stop()
	}
	r.beginLocked(in)
	return nil, nil
}

func (r *reverser) beginLocked(in control.DialRequest) {
	ctx, stop := context.WithCancel(r.mu.ctx)
	t := &reverseTask{addresses: in.Addresses, stop: stop}
	t.end = time.AfterFunc(control.DialFor, stop)
	r.mu.tasks[in.Gateway] = t
	r.log.Info("a gateway cannot reach this node, connecting to it", "gateway", in.Gateway, "addresses", in.Addresses)
	r.wg.Go(func() {
		defer stop()
		err := r.server.DialReverse(ctx, pool.ReverseConfig{
			Addr: in.Addresses[0], Gateway: in.Gateway, TLS: r.credentials.Client(identity.RoleGateway, in.Gateway), Dial: r.wires.through(firstOf(in.Addresses)),
		})
		if err != nil {
			r.log.Error("connecting to a gateway", "gateway", in.Gateway, "because", err)
		}
	})
}

// firstOf dials the first of several addresses that answers.
func firstOf(addresses []string) pool.DialFunc {
	dialer := &net.Dialer{KeepAlive: -1, Timeout: 2 * time.Second}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var faults []error
		for _, a := range addresses {
			conn, err := dialer.DialContext(ctx, network, a)
			if err == nil {
				return conn, nil
			}
			faults = append(faults, err)
		}
		return nil, errors.Join(faults...)
	}
}
