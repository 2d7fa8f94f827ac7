package control

import (
	"context"
	"errors"
	"fmt"
)

// A GatewayRecord is where members find one gateway of the swarm. It stays when
// the gateway dies: it may come back.
type GatewayRecord struct {
	Version int      `json:"version"`
	Name    string   `json:"name"`
	Join    []string `json:"join"` // enrolment endpoints, which give weights as well, host:port
}

func (r *GatewayRecord) kind() string  { return "gateway record" }
func (r *GatewayRecord) version() *int { return &r.Version }

// maxJoin bounds the addresses of one gateway.
const maxJoin = 64

// Validate lists everything that is wrong with the record.
func (r *GatewayRecord) Validate() error {
	var f faults
	f.add(ValidateNodeName(r.Name))
	f.check(len(r.Join) <= maxJoin, "%d addresses of gateway %q, at most %d", len(r.Join), r.Name, maxJoin)
	return f.join()
}

// PutGateway writes where a gateway is.
func PutGateway(ctx context.Context, store Store, rec *GatewayRecord) error {
	data, err := Encode(rec)
	if err != nil {
		return err
	}
	for {
		e, err := store.Get(ctx, BucketGateways, rec.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			_, err = store.Create(ctx, BucketGateways, rec.Name, data)
		case err == nil && string(e.Value) != string(data):
			_, err = store.CompareAndSet(ctx, BucketGateways, rec.Name, data, e.Revision)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("say where gateway %s is: %w", rec.Name, err)
		}
	}
}

// Gateways lists the swarm's gateways in name order, also those that are dead.
func Gateways(ctx context.Context, store Store) ([]*GatewayRecord, error) {
	return list(ctx, store, BucketGateways, func() *GatewayRecord { return new(GatewayRecord) })
}
