package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hecate/internal/control"
)

// listTimeout bounds a listing of a thousand nodes.
const listTimeout = 5 * time.Second

// Get implements control.Store.
func (c *Conn) Get(ctx context.Context, b control.Bucket, key string) (control.Entry, error) {
	kv, err := c.bucket(ctx, b)
	if err != nil {
		return control.Entry{}, err
	}
	e, err := kv.Get(ctx, control.EscapeElement(key))
	if err != nil {
		return control.Entry{}, translate(b, key, err)
	}
	return control.Entry{Key: key, Value: e.Value(), Revision: e.Revision()}, nil
}

// List implements control.Store.
func (c *Conn) List(ctx context.Context, b control.Bucket) ([]control.Entry, error) {
	// The server that lists may die on the way, which the client library
	// notices late.
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	kv, err := c.bucket(ctx, b)
	if err != nil {
		return nil, err
	}
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("listing the bucket %s: %w", b, err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			c.log.Debug("ending a listing", "bucket", b, "error", err)
		}
	}()
	var out []control.Entry
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("listing the bucket %s: %w", b, ctx.Err())
		case e, ok := <-w.Updates():
			if !ok {
				return nil, fmt.Errorf("listing the bucket %s: %w", b, errWatchEnded)
			}
			if e == nil {
				slices.SortFunc(out, func(x, y control.Entry) int { return strings.Compare(x.Key, y.Key) })
				return out, nil
			}
			entry, err := entryOf(e)
			if err != nil {
				return nil, err
			}
			out = append(out, entry)
		}
	}
}

var errWatchEnded = errors.New("the connection was lost on the way")

func entryOf(e jetstream.KeyValueEntry) (control.Entry, error) {
	key, err := control.UnescapeElement(e.Key())
	if err != nil {
		return control.Entry{}, fmt.Errorf("bucket %s: %w", e.Bucket(), err)
	}
	return control.Entry{Key: key, Value: e.Value(), Revision: e.Revision()}, nil
}

// Create implements control.Store.
func (c *Conn) Create(ctx context.Context, b control.Bucket, key string, value []byte) (uint64, error) {
	kv, err := c.bucket(ctx, b)
	if err != nil {
		return 0, err
	}
	rev, err := throughElection(ctx, func() (uint64, error) { return kv.Create(ctx, control.EscapeElement(key), value) })
	return rev, translate(b, key, err)
}

// CompareAndSet implements control.Store.
func (c *Conn) CompareAndSet(ctx context.Context, b control.Bucket, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return 0, fmt.Errorf("%s/%s: revision 0: %w", b, key, control.ErrConflict)
	}
	kv, err := c.bucket(ctx, b)
	if err != nil {
		return 0, err
	}
	rev, err := throughElection(ctx, func() (uint64, error) { return kv.Update(ctx, control.EscapeElement(key), value, revision) })
	return rev, translate(b, key, err)
}

// Delete implements control.Store.
func (c *Conn) Delete(ctx context.Context, b control.Bucket, key string, revision uint64) error {
	e, err := c.Get(ctx, b, key)
	if err != nil {
		return err
	}
	if revision != 0 && e.Revision != revision {
		return fmt.Errorf("%s/%s at revision %d, not %d: %w", b, key, e.Revision, revision, control.ErrConflict)
	}
	kv, err := c.bucket(ctx, b)
	if err != nil {
		return err
	}
	return translate(b, key, kv.Delete(ctx, control.EscapeElement(key), jetstream.LastRevision(e.Revision)))
}
