package doctor

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"hecate/internal/control/discovery"
	"hecate/internal/control/identity"
)

const (
	dialWithin = 3 * time.Second
	// badSkew is what enrolment refuses; oddSkew deserves a word.
	badSkew = 5 * time.Minute
	oddSkew = 10 * time.Second
)

// multicast announces something and looks for it.
func multicast(ctx context.Context) []Finding {
	const check = "multicast"
	const instead = "gateways are not found by themselves here; give nodes an address with --gateway"
	usable := discovery.Interfaces()
	if len(usable) == 0 {
		return []Finding{{check, Warn, "no interface has it", instead}}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return []Finding{{check, Warn, err.Error(), instead}}
	}
	a := discovery.Announcement{Gateway: "doctor", Tag: discovery.Tag(secret), Port: 1}
	wg.Go(func() { discovery.Announce(ctx, a, slog.New(slog.DiscardHandler)) })
	for range 3 { // the announcement needs a moment
		found, err := discovery.Find(ctx, a.Tag, 500*time.Millisecond)
		if err != nil {
			return []Finding{{check, Warn, err.Error(), instead}}
		}
		if len(found) > 0 {
			return []Finding{well(check, "this machine hears its own announcements")}
		}
	}
	return []Finding{{check, Warn, "an announcement was not heard, not even here", instead}}
}

// gateway checks one enrolment endpoint: reachable, of our swarm, clock.
func gateway(ctx context.Context, address string, pin *[32]byte) []Finding {
	const check = "gateway"
	began := time.Now()
	conn, f := dial(ctx, check, address)
	if conn == nil {
		return []Finding{f}
	}
	defer conn.Close()
	took := time.Since(began)
	conf := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} //nolint:gosec // nothing is said, only looked at
	if pin != nil {
		conf = identity.Pinned(*pin)
	}
	secure, err := handshake(ctx, conn, conf)
	if fault := identity.ClockFault(err); fault != nil {
		return []Finding{{"clock", Fail, fmt.Sprintf("%s: %v", address, fault), "let both machines keep time by NTP"}}
	}
	if silent(err) {
		return []Finding{{check, Fail, address + " takes connections and says nothing", standsStill}}
	}
	if err != nil {
		return []Finding{{check, Fail, fmt.Sprintf("%s: %v", address, err), "check that this is the gateway's enrolment address, and of this swarm"}}
	}
	out := []Finding{well(check, "%s answers in %s", address, took.Round(10*time.Microsecond))}
	if at, err := dateOf(ctx, secure, address); err == nil {
		out = append(out, clock(address, time.Since(at)))
	}
	return out
}

// standsStill is what to do about somebody who takes connections, by the kernel of
// its machine, and answers none.
const standsStill = "the process there stands still or has too much to do: look at that machine, and start it anew"

// handshake says who the other side is, in a time in which anybody can answer.
func handshake(ctx context.Context, conn net.Conn, conf *tls.Config) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	secure := tls.Client(conn, conf)
	return secure, secure.HandshakeContext(ctx)
}

// silent reports whether a handshake ended without an answer.
func silent(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// dateOf asks a gateway for its time, to the second.
func dateOf(ctx context.Context, conn net.Conn, address string) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/", nil)
	if err != nil {
		return time.Time{}, err
	}
	if err := conn.SetDeadline(time.Now().Add(dialWithin)); err != nil {
		return time.Time{}, err
	}
	if err := req.Write(conn); err != nil {
		return time.Time{}, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	return http.ParseTime(resp.Header.Get("Date"))
}

func clock(address string, skew time.Duration) Finding {
	f := well("clock", "within %s of the gateway at %s", max(skew.Abs().Round(time.Second), time.Second), address)
	direction := "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	if skew.Abs() >= oddSkew {
		f.Status, f.Do = Warn, "let both machines keep time by NTP"
		f.Detail = fmt.Sprintf("%s %s the gateway at %s", skew.Abs().Round(time.Second), direction, address)
	}
	if skew.Abs() >= badSkew {
		f.Status, f.Do = Fail, "certificates will be refused: set the clock that is wrong"
	}
	return f
}

// bus checks that a NATS server answers.
func bus(ctx context.Context, address string) []Finding {
	const check = "control"
	address = address[strings.LastIndex(address, "/")+1:] // of a URL
	conn, f := dial(ctx, check, address)
	if conn == nil {
		return []Finding{f}
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(dialWithin)); err != nil {
		return []Finding{{check, Fail, fmt.Sprintf("%s: %v", address, err), "try again"}}
	}
	line, err := bufio.NewReaderSize(conn, 4096).ReadString(' ')
	if err != nil || line != "INFO " {
		return []Finding{{check, Fail, address + " does not speak NATS", "check which program listens there, and the gateway's --nats"}}
	}
	return []Finding{well(check, "NATS answers at %s", address)}
}

// dial connects, or says why it did not work and what to do.
func dial(ctx context.Context, check, address string) (net.Conn, Finding) {
	d := net.Dialer{Timeout: dialWithin}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		return conn, Finding{}
	}
	f := Finding{check, Fail, fmt.Sprintf("%s: %v", address, err), "check the address"}
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		f.Do = "the name is not known here; use the IP address"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Do = "nothing listens there: start hecate serve on that machine, or correct the port"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		f.Do = "there is no way to that network: check cable, WLAN and address"
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Do = "no answer: a firewall drops it, or the machine is off; open the port there"
	}
	return nil, f
}
