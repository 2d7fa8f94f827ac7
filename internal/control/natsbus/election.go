package natsbus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// electionWait is how long a write waits for a bucket whose leading server
	// died: the others choose a new one within a few seconds.
	electionWait = 6 * time.Second
	// electionPause is between two tries.
	electionPause = 200 * time.Millisecond
)

// throughElection writes again while the bucket has no leader. Nobody took what
// was written then, so a repetition writes nothing twice.
func throughElection(ctx context.Context, write func() (uint64, error)) (uint64, error) {
	for began := time.Now(); ; {
		rev, err := write()
		if !errors.Is(err, jetstream.ErrNoStreamResponse) || time.Since(began) > electionWait {
			return rev, err
		}
		select {
		case <-ctx.Done():
			return rev, err
		case <-time.After(electionPause):
		}
	}
}
