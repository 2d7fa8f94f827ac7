package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// A GatewayRecord is where members find one gateway of the swarm. It stays for a
// week when the gateway dies: it may come back.
type GatewayRecord struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Join    []string  `json:"join"`          // enrolment endpoints, which give weights as well, host:port
	Seen    time.Time `json:"seen,omitzero"` // when the gateway last said so, to the hour
}

const (
	// GatewayRenewal is how often a gateway that lives writes its record anew.
	GatewayRenewal = time.Hour
	// GatewayLife is how long the record of one stays that does not. Who comes back
	// later writes a new one.
	GatewayLife = 7 * 24 * time.Hour
	// gatewayRetry is between two tries of a store that cannot be reached.
	gatewayRetry = time.Second
)

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

// Gateways lists the swarm's gateways in name order, also those that died within a
// week.
func Gateways(ctx context.Context, store Store) ([]*GatewayRecord, error) {
	return list(ctx, store, BucketGateways, func() *GatewayRecord { return new(GatewayRecord) })
}

// KeepGateway writes where a gateway is, now and again, until ctx ends. While leading
// says so it also removes the records of gateways that are gone for good.
func KeepGateway(ctx context.Context, store Store, rec GatewayRecord, leading func() bool, log *slog.Logger) {
	for {
		pause := GatewayRenewal
		rec.Seen = time.Now().UTC().Truncate(time.Hour)
		if err := PutGateway(ctx, store, &rec); err != nil && ctx.Err() == nil {
			log.Warn("other gateways do not know where this one is", "error", err)
			pause = gatewayRetry
		}
		if leading() {
			gone, err := ForgetGateways(ctx, store, time.Now())
			for _, name := range gone {
				log.Info("a gateway that was not heard of for a week is forgotten", "gateway", name)
			}
			if err != nil && ctx.Err() == nil {
				log.Warn("gateways that are gone are not forgotten", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// ForgetGateways removes the records that nobody has renewed for GatewayLife, and
// says whose they were. One that does not say when it was written is given that life
// from now on. A record that is written meanwhile stays.
func ForgetGateways(ctx context.Context, store Store, now time.Time) (gone []string, err error) {
	entries, err := store.List(ctx, BucketGateways)
	if err != nil {
		return nil, fmt.Errorf("look for gateways that are gone: %w", err)
	}
	for _, e := range entries {
		rec := &GatewayRecord{}
		if err := Decode(e.Value, rec); err != nil {
			continue // of a newer version, perhaps
		}
		switch {
		case rec.Seen.IsZero():
			rec.Seen = now.UTC().Truncate(time.Hour)
			data, encoded := Encode(rec)
			if err = encoded; err == nil {
				_, err = store.CompareAndSet(ctx, BucketGateways, e.Key, data, e.Revision)
			}
		case now.Sub(rec.Seen) > GatewayLife:
			if err = store.Delete(ctx, BucketGateways, e.Key, e.Revision); err == nil {
				gone = append(gone, rec.Name)
			}
		}
		if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			return gone, fmt.Errorf("forget gateway %s: %w", rec.Name, err)
		}
	}
	return gone, nil
}
