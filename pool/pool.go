package pool

import (
	"context"
	"errors"
	"net"
)

// Pool is the gateway's side: it keeps writers to every group of the desired
// map and binds sessions to them.
type Pool struct{}

// New starts a pool with an empty desired map. It lists every fault of the
// configuration at once.
func New(cfg Config) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Pool{}, nil
}

// Apply makes m the desired map. It returns at once; connections follow in the
// background (see Ready and Snapshot). A map that is older than the current
// one is refused with ErrStaleRevision; the same map again changes nothing.
func (p *Pool) Apply(m Map) error { return errors.ErrUnsupported }

// Open binds a new session to a writer of the group.
func (p *Pool) Open(ctx context.Context, group string, opt OpenOptions) (Session, error) {
	return nil, errors.ErrUnsupported
}

// Ready says whether the group can take sessions now.
func (p *Pool) Ready(group string) Readiness { return Readiness{Group: group} }

// Snapshot is everything visible of the pool now.
func (p *Pool) Snapshot() Snapshot { return Snapshot{} }

// Reload changes the policies without a restart. Nothing changes when any
// setting is out of range; active sessions are never unbound by it.
func (p *Pool) Reload(s Settings) error { return errors.ErrUnsupported }

// ServeReverse accepts connections from nodes that cannot be dialled, until ctx
// ends, the listener fails or the pool closes.
func (p *Pool) ServeReverse(ctx context.Context, l net.Listener) error {
	return errors.ErrUnsupported
}

// Rotate replaces every writer, one after the other, by a successor: after the
// certificates behind Config.TLS changed.
func (p *Pool) Rotate() {}

// Close stops admission, lets sessions end until ctx does, closes the rest and
// returns when nothing of the pool is left.
func (p *Pool) Close(ctx context.Context) error { return nil }
