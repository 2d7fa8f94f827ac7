package chaos

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// port is a node's data port that says its name and then echoes.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

type town struct {
	*Links
	t     *testing.T
	ports map[string]string // by address, the node
}

func newTown(t *testing.T) *town {
	w := &town{t: t, ports: map[string]string{}}
	w.Links = NewLinks(func(addr string) string { return w.ports[addr] })
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *town) node(name string) (addr string) {
	addr = port(w.t)
	w.ports[addr] = name
	return addr
}

func (w *town) dial(addr string) net.Conn {
	w.t.Helper()
	c, err := w.Dial(w.t.Context(), "tcp4", addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

func (w *town) tell(node, command string) {
	w.t.Helper()
	if err := w.Tell(w.t.Context(), node, command); err != nil {
		w.t.Fatal(err)
	}
}

// echo sends a byte and waits for it; a guard turns a hang into a failure.
func echo(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte{7}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// mute says that nothing comes back for a moment.
func mute(c net.Conn) bool {
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.Write([]byte{7})
	_, err := c.Read(make([]byte, 1))
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// What is done to one node is not done to others, and ends with heal.
func TestALinkFailsAloneAndHeals(t *testing.T) {
	w := newTown(t)
	a, b := w.node("a"), w.node("b")
	ca, cb := w.dial(a), w.dial(b)
	if err := errors.Join(echo(ca), echo(cb)); err != nil {
		t.Fatal(err)
	}
	w.tell("a", "drop")
	if !w.Bent("a") || w.Bent("b") {
		t.Error("it is a's link that was told to fail")
	}
	if !mute(ca) {
		t.Error("a answers though its link drops")
	}
	if err := echo(cb); err != nil {
		t.Errorf("b is not to suffer: %v", err)
	}
	w.tell("a", "heal")
	_ = ca.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(ca, make([]byte, 1)); err != nil {
		t.Errorf("a after healing: %v", err)
	}
	if w.Bent("a") {
		t.Error("a's link was healed")
	}
	w.tell("a", "reset")
	if err := echo(ca); err == nil {
		t.Error("a connection outlived a reset")
	}
	w.tell("a", "delay 50ms")
	began := time.Now()
	if err := echo(w.dial(a)); err != nil || time.Since(began) < 100*time.Millisecond {
		t.Errorf("an echo over a link of 50 ms took %v (%v)", time.Since(began), err)
	}
	w.tell("a", "refuse")
	if _, err := w.Dial(t.Context(), "tcp4", a); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a refusing node: %v", err)
	}
}

// Nobody gets through a partition to connect; who waits gets through when it ends.
func TestAPartitionLetsNobodyConnect(t *testing.T) {
	w := newTown(t)
	a := w.node("a")
	w.dial(a)
	w.tell("a", "partition")
	w.tell("a", "partition") // twice is once
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if c, err := w.Dial(ctx, "tcp4", a); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("connected through a partition: %v, %v", c, err)
	}
	got := make(chan error, 1)
	go func() {
		c, err := w.Dial(t.Context(), "tcp4", a)
		if err == nil {
			err = echo(c)
			c.Close()
		}
		got <- err
	}()
	w.tell("a", "heal")
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// A node that was started anew has another port and the same bad link.
func TestALinkStaysBadWhenTheNodeRestarts(t *testing.T) {
	w := newTown(t)
	w.dial(w.node("a")).Close()
	w.tell("a", "drop")
	second := w.dial(w.node("a"))
	if !mute(second) {
		t.Error("the new process answers")
	}
	w.tell("a", "heal")
	_ = second.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(second, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	w.tell("a", "refuse")
	if _, err := w.Dial(t.Context(), "tcp4", w.node("a")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the third process: %v", err)
	}
}

func TestLinkCommandsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "a link knows delay, loss",
		"wait 3s":            "a link knows delay, loss",
		"pass":               "a link knows delay, loss",
		"delay":              "one is needed",
		"delay soon":         "invalid duration",
		"loss 2":             "need 0 to 1",
		"partition up":       "takes no more words",
		"heal now":           "takes no more words",
		"throttle 3 parsecs": "one is needed",
	} {
		if _, err := ParseLink(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	w := newTown(t)
	if err := w.Tell(t.Context(), "nobody", "drop"); err == nil {
		t.Error("a link of nobody was changed")
	}
}
