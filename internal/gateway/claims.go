package gateway

import (
	"context"
	"maps"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/dispatch"
)

const (
	claimsEvery = 200 * time.Millisecond // what changes always is said so often
	claimsRenew = time.Second            // what does not change is said again
	// claimsLife is how long claims stand: as long as a node's silence.
	claimsLife = 2500 * time.Millisecond
)

// claims lets the answers of gateways that share nodes make room for one another. It
// tells the others what the admission's answers want, and the admission what others
// want. It is run's goroutine's own.
type claims struct {
	bus       control.Bus
	admission *admission.Admission
	name      string

	said   map[string]admission.Claim
	saidAt time.Time
	heard  map[string]time.Time // gateways whose claims stand
}

// run speaks and listens until ctx ends.
func (c *claims) run(ctx context.Context) error {
	news := make(chan *control.RoomClaims, 64)
	stop, err := c.bus.Subscribe(control.AllClaims, func(m control.Message) {
		said := &control.RoomClaims{}
		if control.Decode(m.Data, said) != nil || said.Gateway == c.name {
			return
		}
		select {
		case news <- said:
		default: // it is said again
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	c.heard = map[string]time.Time{}
	tick := time.NewTicker(claimsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case said := <-news:
			c.hear(said)
			continue
		case <-c.admission.Claimed():
		case <-tick.C:
			c.forget()
		}
		c.say()
	}
}

// say tells what is wanted, if that is another thing than before, or was said a
// while ago.
func (c *claims) say() {
	now := c.admission.Claims()
	if maps.EqualFunc(now, c.said, admission.Claim.Equal) && (len(now) == 0 || time.Since(c.saidAt) < claimsRenew) {
		return
	}
	doc := &control.RoomClaims{Gateway: c.name}
	for model, w := range now {
		doc.Claims = append(doc.Claims, claimOf(model, w))
	}
	data, err := control.Encode(doc)
	if err == nil {
		err = c.bus.Publish(control.ClaimsSubject(c.name), data)
	}
	if err == nil {
		c.said, c.saidAt = now, time.Now()
	}
}

func (c *claims) hear(said *control.RoomClaims) {
	c.heard[said.Gateway] = time.Now()
	wants := map[string]admission.Claim{}
	for _, w := range said.Claims {
		wants[w.Model] = wantOf(w)
	}
	c.admission.Heed(said.Gateway, wants)
}

func claimOf(model string, w admission.Claim) control.RoomClaim {
	c := control.RoomClaim{Model: model, Oldest: w.Oldest, Holds: w.Holds, Missing: w.Missing, Youngest: w.Youngest}
	if len(w.Growth) > 0 {
		c.Growth = map[string]control.RoomGrowth{}
	}
	for node, g := range w.Growth {
		c.Growth[node] = control.RoomGrowth(g)
	}
	return c
}

func wantOf(c control.RoomClaim) admission.Claim {
	w := admission.Claim{Oldest: c.Oldest, Holds: c.Holds, Missing: c.Missing, Youngest: c.Youngest}
	if len(c.Growth) > 0 {
		w.Growth = map[string]dispatch.Growth{}
	}
	for node, g := range c.Growth {
		w.Growth[node] = dispatch.Growth(g)
	}
	return w
}

// forget drops the claims of gateways that say nothing any more.
func (c *claims) forget() {
	for gateway, at := range c.heard {
		if time.Since(at) > claimsLife {
			delete(c.heard, gateway)
			c.admission.Heed(gateway, nil)
		}
	}
}
