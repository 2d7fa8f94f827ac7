package natsbus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A write is repeated while a bucket has no leader, for a while, and for no other
// reason.
func TestWritesWaitForAnElection(t *testing.T) {
	none := fmt.Errorf("write: %w", jetstream.ErrNoStreamResponse)
	for name, c := range map[string]struct {
		fails int
		with  error
		tries int
		ok    bool
	}{
		"a leader is there": {0, nil, 1, true},
		"it comes":          {3, none, 4, true},
		"another failure":   {1, errors.New("wrong revision"), 1, false},
		"it does not come":  {1 << 20, none, int(electionWait/electionPause) + 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				_, err := throughElection(context.Background(), func() (uint64, error) {
					if tries++; tries <= c.fails {
						return 0, c.with
					}
					return 7, nil
				})
				if tries != c.tries || (err == nil) != c.ok {
					t.Errorf("%d tries, %v; want %d, success %v", tries, err, c.tries, c.ok)
				}
			})
		})
	}
}

func TestAWriteDoesNotOutliveItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := throughElection(ctx, func() (uint64, error) { return 0, jetstream.ErrNoStreamResponse }); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Error(err)
	}
}
