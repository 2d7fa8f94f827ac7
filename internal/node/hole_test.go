package node

import (
	"net"
	"testing"
	"time"
)

// A connection that lost a packet is mute for good; a later one is not.
func TestAHoleSwallows(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHole(l)
	defer h.Close()
	pair := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err = h.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	client, server := pair()
	defer client.Close()
	defer server.Close()
	h.Swallow(time.Hour)
	if n, err := server.Write([]byte("lost")); n != 4 || err != nil {
		t.Errorf("the sender noticed: %d, %v", n, err)
	}
	h.Swallow(0)
	if n, err := server.Write([]byte("too")); n != 3 || err != nil {
		t.Errorf("the sender noticed later: %d, %v", n, err)
	}
	_ = client.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := client.Read(make([]byte, 8)); err == nil {
		t.Errorf("%d bytes came through a stream with a gap", n)
	}
	// What the node dials itself falls into it too.
	h.Swallow(time.Hour)
	outer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	own, err := h.through((&net.Dialer{}).DialContext)(t.Context(), "tcp", outer.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	far, err := outer.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := own.Write([]byte("lost")); err != nil {
		t.Errorf("the node noticed: %v", err)
	}
	_ = far.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := far.Read(make([]byte, 8)); err == nil {
		t.Errorf("%d bytes of the node's own connection came through", n)
	}
	h.Swallow(0)
	client, server = pair()
	defer client.Close()
	defer server.Close()
	if _, err := server.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 8)); n != 2 || err != nil {
		t.Errorf("a new connection: %d, %v", n, err)
	}
}
