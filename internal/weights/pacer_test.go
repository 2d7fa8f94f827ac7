package weights

import (
	"net"
	"testing"
	"time"
)

// link is a bottleneck with one queue, which others use as well.
type link struct {
	rate  float64 // bytes per second
	other float64 // of it, that others send
	trip  time.Duration
	until time.Time // when what is queued has gone
}

func (l *link) send(now time.Time, n int) {
	if l.until.Before(now) {
		l.until = now
	}
	l.until = l.until.Add(time.Duration(float64(n) / (l.rate - l.other) * float64(time.Second)))
}

func (l *link) queue(now time.Time) time.Duration { return max(0, l.until.Sub(now)) }

// drive sends for a while, and gives the rate and the longest queue of its second half.
func (l *link) drive(p *pacer, from time.Time, d time.Duration) (rate float64, worst time.Duration) {
	sent := 0
	now := from
	p.measure = func() (time.Duration, time.Duration, bool) { return l.trip + l.queue(now), l.trip, true }
	for now.Sub(from) < d {
		n, wait := p.step(now)
		now = now.Add(max(wait, 10*time.Microsecond))
		l.send(now, n)
		if now.Sub(from) > d/2 {
			sent += n
			worst = max(worst, l.queue(now))
		}
	}
	return float64(sent) / (d / 2).Seconds(), worst
}

// While answers run, a transfer takes most of what others leave, and hardly ever
// makes them wait; while none does it is not held back at all.
func TestATransferYields(t *testing.T) {
	for name, l := range map[string]*link{
		"50 Mbit/s":              {rate: 6.25e6, trip: 300 * time.Microsecond},
		"a gigabit":              {rate: 125e6, trip: 200 * time.Microsecond},
		"100 Mbit/s, half taken": {rate: 12.5e6, other: 6e6, trip: time.Millisecond},
		"a far node":             {rate: 12.5e6, trip: 40 * time.Millisecond},
	} {
		p := &pacer{busy: func() bool { return true }}
		rate, worst := l.drive(p, time.Unix(1000, 0), 20*time.Second)
		free := l.rate - l.other
		if limit := max(politeQueue, l.trip/4) + 10*time.Millisecond; worst > limit {
			t.Errorf("%s: bytes of others wait for %s, want at most %s", name, worst, limit)
		}
		if rate < free/2 {
			t.Errorf("%s: it takes %.0f of %.0f bytes a second", name, rate, free)
		}
		idle := &pacer{busy: func() bool { return false }}
		if n, wait := idle.step(time.Unix(1000, 0)); n != chunk || wait != 0 {
			t.Errorf("%s: nobody answers, and it sends %d bytes after %s", name, n, wait)
		}
	}
}

// A connection that tells nothing of itself is not held back.
func TestATransferOfWhichNothingIsKnown(t *testing.T) {
	p := &pacer{busy: func() bool { return true }, measure: func() (time.Duration, time.Duration, bool) { return 0, 0, false }}
	if n, wait := p.step(time.Unix(1000, 0)); n != chunk || wait != 0 {
		t.Errorf("it sends %d bytes after %s", n, wait)
	}
}

// between is a connection of which only the ends are known.
type between struct {
	net.Conn
	near, far string
}

func (b between) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.ParseIP(b.near)} }
func (b between) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(b.far)} }

// Two processes of one machine share no link.
func TestWhatStaysWithinAMachineIsNotPaced(t *testing.T) {
	for ends, want := range map[[2]string]bool{
		{"127.0.0.1", "127.0.0.1"}: false, {"127.0.0.1", "127.0.0.2"}: false, {"::1", "::1"}: false,
		{"10.0.0.1", "10.0.0.1"}: false, {"10.0.0.1", "10.0.0.2"}: true, {"fd00::1", "fd00::2"}: true,
	} {
		if got := crossesLink(between{near: ends[0], far: ends[1]}); got != want {
			t.Errorf("%s: crosses a link %v, want %v", ends, got, want)
		}
	}
}
