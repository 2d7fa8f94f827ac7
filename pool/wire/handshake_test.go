package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// outcome is what one side of a handshake came to.
type outcome struct {
	agreed Agreed
	err    error
}

// shake runs both sides over an unbuffered pipe, the strictest transport there is.
func shake(dialer, acceptor Hello, dOpt, aOpt HandshakeOptions) (d, a outcome) {
	c, s := net.Pipe()
	done := make(chan outcome, 1)
	go func() {
		agreed, err := Accept(context.Background(), s, acceptor, aOpt)
		done <- outcome{agreed, err}
	}()
	d.agreed, d.err = Dial(context.Background(), c, dialer, dOpt)
	a = <-done // both come to an end by themselves
	c.Close()
	s.Close()
	return d, a
}

func gateway() Hello {
	return Hello{Node: "gw", Swarm: "home", Role: RoleGateway, Features: 0b0111, WindowBytes: 1 << 20, WindowMessages: 64}
}

func node() Hello {
	return Hello{Node: "node-7", Swarm: "home", Role: RoleNode, Features: 0b1110, WindowBytes: 4 << 20, WindowMessages: 768}
}

func TestHandshakeAgrees(t *testing.T) {
	n := node()
	n.Reverse = true
	n.Required = 0b0010
	d, a := shake(n, gateway(), HandshakeOptions{}, HandshakeOptions{})
	if d.err != nil || a.err != nil {
		t.Fatalf("dialer: %v, acceptor: %v", d.err, a.err)
	}
	n.MinVersion, n.MaxVersion = MinVersion, MaxVersion
	if a.agreed.Peer != n {
		t.Errorf("acceptor saw %+v, want %+v", a.agreed.Peer, n)
	}
	g := gateway()
	g.MinVersion, g.MaxVersion = MinVersion, MaxVersion
	if d.agreed.Peer != g {
		t.Errorf("dialer saw %+v, want %+v", d.agreed.Peer, g)
	}
	for _, o := range []outcome{d, a} {
		if o.agreed.Version != MaxVersion || o.agreed.Features != 0b0110 {
			t.Errorf("agreed on version %d, features %b", o.agreed.Version, o.agreed.Features)
		}
	}
}

func TestVersionsAgreeOnTheHighestCommonOne(t *testing.T) {
	span := func(lo, hi uint16) Hello { return Hello{MinVersion: lo, MaxVersion: hi} }
	for _, c := range []struct {
		a, b Hello
		want uint16 // 0: refused
	}{
		{span(1, 1), span(1, 1), 1}, {span(1, 3), span(2, 5), 3}, {span(1, 9), span(4, 4), 4},
		{span(1, 1), span(2, 2), 0}, {span(3, 5), span(1, 2), 0}, {span(5, 4), span(1, 9), 0},
	} {
		for range 2 {
			got, no := agree(c.a, c.b)
			if got.Version != c.want || (no == nil) != (c.want != 0) {
				t.Errorf("agree(%d-%d, %d-%d) = %d, %v; want %d", c.a.MinVersion, c.a.MaxVersion,
					c.b.MinVersion, c.b.MaxVersion, got.Version, no, c.want)
			}
			c.a, c.b = c.b, c.a
		}
	}
}

func TestRefusalReachesBothSides(t *testing.T) {
	with := func(change func(*Hello)) Hello { h := node(); change(&h); return h }
	check := func(err error) HandshakeOptions {
		return HandshakeOptions{Check: func(Hello) error { return err }}
	}
	wrongName := &Refusal{Reason: RefuseIdentity, Text: "certificate says node-8"}
	for _, c := range []struct {
		name       string
		acceptor   Hello
		dOpt, aOpt HandshakeOptions
		reason     RefusalReason
		byDialer   bool
		text       string
	}{
		{name: "version", acceptor: with(func(h *Hello) { h.MinVersion, h.MaxVersion = 7, 9 }), reason: RefuseVersion, text: "7 to 9"},
		{name: "swarm", acceptor: with(func(h *Hello) { h.Swarm = "work" }), reason: RefuseSwarm, text: `"work"`},
		{name: "features", acceptor: with(func(h *Hello) { h.Required = 1 << 40 }), reason: RefuseFeatures, text: "0x10000000000"},
		{name: "acceptor's check", acceptor: node(), aOpt: check(wrongName), reason: RefuseIdentity, text: "node-8"},
		{name: "dialer's check", acceptor: node(), dOpt: check(wrongName), reason: RefuseIdentity, byDialer: true, text: "node-8"},
		{name: "busy", acceptor: node(), aOpt: check(&Refusal{Reason: RefuseBusy}), reason: RefuseBusy},
		{name: "plain error", acceptor: node(), dOpt: check(errors.New("not today\nadmin: ok")), reason: RefusePolicy, byDialer: true, text: "not today?admin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, a := shake(gateway(), c.acceptor, c.dOpt, c.aOpt)
			var dr, ar *Refusal
			if !errors.As(d.err, &dr) || !errors.As(a.err, &ar) {
				t.Fatalf("no refusals: dialer %v, acceptor %v", d.err, a.err)
			}
			if !errors.Is(d.err, ErrRefused) || !errors.Is(a.err, &Refusal{Reason: c.reason}) {
				t.Errorf("errors.Is does not see dialer %v, acceptor %v", d.err, a.err)
			}
			if dr.Reason != c.reason || ar.Reason != c.reason || dr.Text != ar.Text || !strings.Contains(dr.Text, c.text) {
				t.Errorf("dialer: %v; acceptor: %v", d.err, a.err)
			}
			if dr.Remote == c.byDialer || ar.Remote != c.byDialer {
				t.Errorf("who refused: dialer heard remote=%v, acceptor remote=%v", dr.Remote, ar.Remote)
			}
			if !c.byDialer && ar.Peer.Node != "gw" {
				t.Errorf("the refusal does not name the peer: %+v", ar.Peer)
			}
		})
	}
}

func TestStrangers(t *testing.T) {
	hello, _ := node().filled()
	good := appendMessage(nil, kindHello, hello.encode())
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1
	long := append([]byte(nil), good...)
	long[6], long[7] = 0xff, 0xff
	for _, c := range []struct {
		name   string
		bytes  []byte
		reason RefusalReason // 0: no refusal, the peer just went away
	}{
		{"http", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), RefuseMagic},
		{"four bytes", []byte("SSH-"), RefuseMagic},
		{"oversized", long, RefuseMessage},
		{"checksum", flipped, RefuseMessage},
		{"short body", appendMessage(nil, kindHello, []byte("short")), RefuseMessage},
		{"wrong kind", appendMessage(nil, kindConfirm, nil), RefuseMessage},
		{"empty refusal", appendMessage(nil, kindRefusal, nil), 0},
		{"names beyond the body", appendMessage(nil, kindHello, append(make([]byte, 30), 100, 100, 0, 0)), RefuseMessage},
		{"nothing", nil, 0},
		{"half a hello", good[:len(good)/2], 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := net.Pipe()
			reply := make(chan []byte, 1)
			go func() {
				go func() { _, _ = p.Write(c.bytes); closeIf(c.reason == 0, p) }()
				b, _ := io.ReadAll(p)
				reply <- b
			}()
			_, err := Accept(context.Background(), s, gateway(), HandshakeOptions{})
			s.Close()
			p.Close()
			if err == nil {
				t.Fatal("accepted")
			}
			if got := <-reply; c.reason != 0 && !strings.HasPrefix(string(got), string(magic[:])) {
				t.Errorf("the stranger got %q", got)
			}
			if want := (&Refusal{Reason: c.reason}); c.reason != 0 && !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

func closeIf(yes bool, c net.Conn) {
	if yes {
		c.Close()
	}
}

func TestHandshakeEndsWithItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, c := net.Pipe()
		defer silent.Close()
		start := time.Now()
		_, err := Accept(context.Background(), c, gateway(), HandshakeOptions{Timeout: 3 * time.Second})
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, nil)
		defer cancel()
		start = time.Now()
		if _, err = Dial(ctx, c, gateway(), HandshakeOptions{}); err == nil || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestHandshakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, c := net.Pipe()
		defer silent.Close()
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := Accept(ctx, c, gateway(), HandshakeOptions{}); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHelloRefusesOwnLongNames(t *testing.T) {
	h := gateway()
	h.Node = strings.Repeat("x", MaxIdentity+1)
	if _, err := Dial(context.Background(), nil, h, HandshakeOptions{}); !errors.Is(err, ErrLength) {
		t.Errorf("got %v", err)
	}
}

func TestHelloIgnoresWhatLaterVersionsAppend(t *testing.T) {
	want, _ := node().filled()
	got, err := decodeHello(append(want.encode(), "a field of version 2"...))
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzHandshake(f *testing.F) {
	hello, _ := node().filled()
	f.Add(appendMessage(nil, kindHello, hello.encode()))
	f.Add(appendMessage(appendMessage(nil, kindHello, hello.encode()), kindConfirm, nil))
	f.Add(appendMessage(nil, kindRefusal, (&Refusal{Reason: RefuseSwarm, Text: "other"}).encode()))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, side := range []func(context.Context, Conn, Hello, HandshakeOptions) (Agreed, error){Dial, Accept} {
			c := &script{in: in}
			agreed, err := side(context.Background(), c, gateway(), HandshakeOptions{})
			if err == nil && agreed.Peer.Swarm != "home" {
				t.Errorf("agreed with another swarm: %+v", agreed)
			}
			if c.out > 3*(MaxHello+preambleSize) {
				t.Errorf("a stranger was sent %d bytes", c.out)
			}
			if r := (*Refusal)(nil); errors.As(err, &r) && len(r.Text) > 3*MaxReason {
				t.Errorf("refusal text of %d bytes", len(r.Text))
			}
			_ = fmt.Sprint(err)
		}
	})
}

// script is a peer that has already said all it will say.
type script struct {
	in  []byte
	out int
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(b []byte) (int, error) { s.out += len(b); return len(b), nil }
func (s *script) SetDeadline(time.Time) error { return nil }
