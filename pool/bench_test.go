package pool

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// sink reads everything and answers the message "end" by one message.
func sink(ctx context.Context, s Session) {
	for {
		m, err := s.Recv(ctx)
		if err != nil {
			return
		}
		if len(m) == 3 && string(m) == "end" {
			if s.Send(ctx, m) != nil {
				return
			}
		}
		s.Recycle(m)
	}
}

func benchSession(b *testing.B, h Handler) Session {
	b.Helper()
	p, _ := loopback(b, h, "n1")
	s, err := p.Open(context.Background(), "n1", OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// benchSend sends b.N messages of n bytes one way and waits for the last.
func benchSend(b *testing.B, n int) {
	s := benchSession(b, sink)
	ctx := context.Background()
	payload := make([]byte, n)
	b.SetBytes(int64(n))
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		if err := s.Send(ctx, payload); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Send(ctx, []byte("end")); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Recv(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
	reportCPU(b, cpu)
}

// cpuTime is what the process has used so far. On a machine that others use as
// well it says more than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, since time.Duration) {
	b.ReportMetric(float64(cpuTime()-since)/float64(b.N), "cpu-ns/op")
}

func BenchmarkSend32KiB(b *testing.B) { benchSend(b, 32<<10) }
func BenchmarkSend64B(b *testing.B)   { benchSend(b, 64) }
func BenchmarkSend1MiB(b *testing.B)  { benchSend(b, 1<<20) }

func BenchmarkRoundTrip64B(b *testing.B) {
	s := benchSession(b, echo)
	ctx := context.Background()
	payload := make([]byte, 64)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		if err := s.Send(ctx, payload); err != nil {
			b.Fatal(err)
		}
		m, err := s.Recv(ctx)
		if err != nil {
			b.Fatal(err)
		}
		s.Recycle(m)
	}
	reportCPU(b, cpu)
}

// BenchmarkBareTLS32KiB is the yardstick: the same bytes through crypto/tls
// alone.
func BenchmarkBareTLS32KiB(b *testing.B) {
	client, server := tlsPair(b)
	const n = 32 << 10
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, n)
		for range b.N {
			if _, err := io.ReadFull(server, buf); err != nil {
				done <- err
				return
			}
		}
		_, err := server.Write([]byte{1})
		done <- err
	}()
	payload := make([]byte, n)
	b.SetBytes(n)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		if _, err := client.Write(payload); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := io.ReadFull(client, payload[:1]); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	reportCPU(b, cpu)
}

// BenchmarkOpen is a whole short session: open with a message, answer, close.
func BenchmarkOpen(b *testing.B) {
	p, _ := loopback(b, echo, "n1")
	ctx := context.Background()
	payload := make([]byte, 64)
	first, err := p.Open(ctx, "n1", OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	first.Close(CodeNormal)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		s, err := p.Open(ctx, "n1", OpenOptions{Payload: payload})
		if err != nil {
			b.Fatal(err)
		}
		m, err := s.Recv(ctx)
		if err != nil {
			b.Fatal(err)
		}
		s.Recycle(m)
		s.Close(CodeNormal)
	}
	reportCPU(b, cpu)
}

// tlsPair is a TLS 1.3 connection on loopback with mutual certificates.
func tlsPair(t testing.TB) (client, server *tls.Conn) {
	t.Helper()
	ca := newAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client = tls.Client(raw, clientTLS(ca.tls(t, "gateway")))
	server = tls.Server(peer, serverTLS(ca.tls(t, "n1")))
	shaken := make(chan error, 1)
	go func() { shaken <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	_, _ = client.SetDeadline(deadline), server.SetDeadline(deadline)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// BenchmarkAgainstBareTLS sends the same 32 KiB payloads through a session and
// through crypto/tls alone, in turns of some milliseconds, so that whatever else
// the machine does falls on both. x is our throughput over theirs, cpu-x the
// same of CPU time spent.
func BenchmarkAgainstBareTLS(b *testing.B) {
	const n, turn = 32 << 10, 64
	s := benchSession(b, sink)
	client, server := tlsPair(b)
	go func() {
		buf := make([]byte, n)
		for i := 1; ; i++ {
			if _, err := io.ReadFull(server, buf); err != nil {
				return
			}
			if i%turn == 0 {
				_, _ = server.Write(buf[:1])
			}
		}
	}()
	ctx := context.Background()
	payload, one := make([]byte, n), make([]byte, 1)
	ours := func() error {
		for range turn {
			if err := s.Send(ctx, payload); err != nil {
				return err
			}
		}
		if err := s.Send(ctx, []byte("end")); err != nil {
			return err
		}
		_, err := s.Recv(ctx)
		return err
	}
	theirs := func() error {
		for range turn {
			if _, err := client.Write(payload); err != nil {
				return err
			}
		}
		_, err := io.ReadFull(client, one)
		return err
	}
	var wall, cpu [2]time.Duration
	for b.Loop() {
		for i, f := range []func() error{ours, theirs} {
			start, used := time.Now(), cpuTime()
			if err := f(); err != nil {
				b.Fatal(err)
			}
			wall[i] += time.Since(start)
			cpu[i] += cpuTime() - used
		}
	}
	b.ReportMetric(float64(wall[1])/float64(wall[0]), "x")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-x")
	b.ReportMetric(float64(b.N*turn*n)/1e6/wall[0].Seconds(), "MB/s-ours")
}
