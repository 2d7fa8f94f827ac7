package pool_test

import (
	"context"
	"fmt"
	"net"

	"hecate/pool"
)

// An echo service over three endpoints of one node, and a gateway that talks to
// it. In real life both sides get a TLS configuration instead of Plaintext.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	echo := func(ctx context.Context, s pool.Session) {
		for {
			m, err := s.Recv(ctx)
			if err != nil || s.Send(ctx, m) != nil {
				return
			}
		}
	}
	var addrs []string
	for range 3 {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		addrs = append(addrs, l.Addr().String())
		go pool.Serve(ctx, l, pool.ServerConfig{NodeID: "echo-1", Plaintext: true}, echo)
	}

	p, err := pool.New(pool.Config{NodeID: "gateway", Plaintext: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close(ctx)
	_ = p.Apply(pool.Map{Revision: 1, Groups: map[string]pool.Group{"echo-1": pool.GroupOf(addrs...)}})

	s, err := p.Open(ctx, "echo-1", pool.OpenOptions{Payload: []byte("hello, swarm")})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := s.Recv(ctx)
	fmt.Println(string(answer), err)
	s.Close(pool.CodeNormal)
	// Output: hello, swarm <nil>
}
