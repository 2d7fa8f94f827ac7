package chaos

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// standstill are hands whose gateway stands still after the first look: it takes questions
// and answers none. A process that is known can be signalled without it.
type standstill struct {
	diary
	told []string
}

func (m *standstill) Do(ctx context.Context, node string, a Act) error {
	if a == Continue {
		<-ctx.Done()
	}
	m.told = append(m.told, a.String()+" "+node)
	return nil
}

func (m *standstill) Link(ctx context.Context, node, command string) error {
	if command == "heal" {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func TestWhatWasStoppedGoesOnThoughTheGatewayStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Parse("x", strings.NewReader("stop a\ndrop b\nstop c\nwait 1h\n"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		m := new(standstill)
		err = s.Run(ctx, m, func(_ int, text string) {
			if text == "wait 1h" {
				cancel() // somebody presses Ctrl-C
			}
		})
		if got := strings.Join(m.told, ", "); got != "stop a, stop c, continue a, continue c" {
			t.Errorf("it did: %s", got)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "heal b") {
			t.Errorf("it said %v", err)
		}
	})
}
