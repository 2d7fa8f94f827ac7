package natsbus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hecate/internal/control"
)

const (
	// rewatchPause keeps a watch that cannot be set up from becoming a hot loop.
	rewatchPause = 300 * time.Millisecond
	// checkEvery is how often a watch compares itself with the bucket. The
	// server's half of a watch lives on one server of a cluster, which may die
	// while our connection to another is well; the client library notices
	// after ten to fifteen seconds.
	checkEvery = 2 * time.Second
)

// Watch implements control.Store. Every reconnection starts the server's watch
// over and tells what was missed, deletions included.
func (c *Conn) Watch(ctx context.Context, b control.Bucket, key string) (<-chan control.Update, error) {
	w := &watch{conn: c, bucket: b, key: key, out: make(chan control.Update), known: map[string]uint64{}}
	again := c.nextReconnect()
	source, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	go w.run(ctx, source, again)
	return w.out, nil
}

// A watch is one reader's watch across reconnections.
type watch struct {
	conn   *Conn
	bucket control.Bucket
	key    string
	out    chan control.Update
	known  map[string]uint64 // living keys as the reader knows them, by revision
	newest uint64            // revision that was seen, of any key and kind
	synced bool              // the reader was told everything once
}

func (w *watch) open(ctx context.Context) (jetstream.KeyWatcher, error) {
	kv, err := w.conn.bucket(ctx, w.bucket)
	if err != nil {
		return nil, err
	}
	pattern := jetstream.AllKeys
	if w.key != "" {
		pattern = control.EscapeElement(w.key)
	}
	source, err := kv.Watch(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("watching %s/%s: %w", w.bucket, w.key, err)
	}
	return source, nil
}

func (w *watch) run(ctx context.Context, source jetstream.KeyWatcher, again <-chan struct{}) {
	defer close(w.out)
	for {
		w.drain(ctx, source, again)
		if err := source.Stop(); err != nil {
			w.conn.log.Debug("ending a watch", "bucket", w.bucket, "error", err)
		}
		for {
			if ctx.Err() != nil {
				return
			}
			again = w.conn.nextReconnect()
			next, err := w.open(ctx)
			if err == nil {
				source = next
				break
			}
			w.conn.log.Debug("watching again", "bucket", w.bucket, "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(rewatchPause):
			}
		}
	}
}

// drain passes on what one server-side watch delivers, until it ends or has to
// be started over.
func (w *watch) drain(ctx context.Context, source jetstream.KeyWatcher, again <-chan struct{}) {
	seen := map[string]bool{} // keys of the initial delivery; nil after it
	check := time.NewTicker(checkEvery + rand.N(checkEvery/2))
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			return
		case <-check.C:
			if seen == nil && w.behind(ctx) {
				w.conn.log.Info("a watch fell behind and starts over", "bucket", w.bucket)
				return
			}
		case e, ok := <-source.Updates():
			switch {
			case !ok:
				return
			case e == nil:
				w.settle(ctx, seen)
				seen = nil
			default:
				w.pass(ctx, e, seen)
			}
		}
	}
}

// behind reports whether the bucket has something that we were not told. What
// is just on its way is a false alarm, and harmless: nothing is told twice. (So
// is one key of a bucket in which others change; the plan's has only one.)
func (w *watch) behind(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	kv, err := w.conn.bucket(ctx, w.bucket)
	if err != nil {
		return false
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return false // unreachable now: the next check or the reconnection tells
	}
	bucket, ok := status.(*jetstream.KeyValueBucketStatus)
	return ok && bucket.StreamInfo().State.LastSeq > w.newest
}

func (w *watch) pass(ctx context.Context, e jetstream.KeyValueEntry, seen map[string]bool) {
	entry, err := entryOf(e)
	if err != nil {
		w.conn.log.Warn("a key that is not ours", "error", err)
		return
	}
	w.newest = max(w.newest, entry.Revision)
	if seen != nil {
		seen[entry.Key] = true
	}
	had := w.known[entry.Key]
	if e.Operation() != jetstream.KeyValuePut {
		if had != 0 {
			w.gone(ctx, entry.Key, entry.Revision)
		}
		return
	}
	if entry.Revision == had {
		return // told before the reconnection
	}
	w.known[entry.Key] = entry.Revision
	w.send(ctx, control.Update{Entry: entry})
}

// settle ends the initial delivery: what the reader knows and the server no
// longer mentions is gone.
func (w *watch) settle(ctx context.Context, seen map[string]bool) {
	for key, rev := range w.known {
		if !seen[key] {
			w.gone(ctx, key, rev)
		}
	}
	if !w.synced {
		w.synced = true
		w.send(ctx, control.Update{Synced: true})
	}
}

func (w *watch) gone(ctx context.Context, key string, revision uint64) {
	delete(w.known, key)
	w.send(ctx, control.Update{Entry: control.Entry{Key: key, Revision: revision}, Deleted: true})
}

func (w *watch) send(ctx context.Context, u control.Update) {
	select {
	case w.out <- u:
	case <-ctx.Done():
	}
}
