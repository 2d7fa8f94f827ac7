package poolbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
)

// grpcStream makes each channel a bidirectional stream of one HTTP/2 connection.
// Messages are plain bytes: no protocol buffers stand in the way.
type grpcStream struct {
	server *grpc.Server
	conn   *grpc.ClientConn
	wg     sync.WaitGroup
}

// bytesCodec passes *[]byte through.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "bytes" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	// A copy, because gRPC may still hold the message when Send has returned.
	return mem.BufferSlice{mem.Copy(*v.(*[]byte), mem.DefaultBufferPool())}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	p := v.(*[]byte)
	if n := data.Len(); cap(*p) < n {
		*p = make([]byte, n)
	} else {
		*p = (*p)[:n]
	}
	data.CopyTo(*p)
	return nil
}

// exchange describes the one method of the service.
var exchange = grpc.StreamDesc{StreamName: "Exchange", ServerStreams: true, ClientStreams: true}

const exchangeMethod = "/bench.Bench/Exchange"

func newGRPC(id identities) (transport, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	t := &grpcStream{server: grpc.NewServer(
		grpc.Creds(credentials.NewTLS(id.server)), grpc.ForceServerCodecV2(bytesCodec{}), grpc.MaxConcurrentStreams(1<<20),
	)}
	method := exchange
	method.Handler = serveGRPC
	t.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Bench", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{method},
	}, struct{}{})
	t.wg.Go(func() { _ = t.server.Serve(l) })
	t.conn, err = grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(credentials.NewTLS(id.client)),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{})))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("grpc: %w", err), t.close())
	}
	return t, nil
}

func serveGRPC(_ any, st grpc.ServerStream) error {
	ch := &grpcChannel{stream: st}
	b, err := ch.recv()
	if err != nil {
		return err
	}
	sp, err := decodeSpec(b)
	if err != nil {
		return err
	}
	return serve(st.Context(), ch, sp)
}

func (t *grpcStream) open(_ context.Context, sp spec) (channel, error) {
	ctx, cancel := context.WithCancel(context.Background())
	st, err := t.conn.NewStream(ctx, &exchange, exchangeMethod)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("grpc stream: %w", err)
	}
	ch := &grpcChannel{stream: st, cancel: cancel}
	if err := ch.send(sp.encode()); err != nil {
		cancel()
		return nil, fmt.Errorf("grpc stream: %w", err)
	}
	return ch, nil
}

func (t *grpcStream) close() error {
	var err error
	if t.conn != nil {
		err = t.conn.Close()
	}
	t.server.Stop()
	t.wg.Wait()
	return err
}

// messenger is what both ends of a stream have in common.
type messenger interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

type grpcChannel struct {
	stream  messenger
	cancel  context.CancelFunc
	out, in []byte
}

func (c *grpcChannel) send(p []byte) error {
	c.out = p
	return c.stream.SendMsg(&c.out)
}

func (c *grpcChannel) recv() ([]byte, error) {
	err := c.stream.RecvMsg(&c.in)
	return c.in, err
}

func (c *grpcChannel) close() {
	if c.cancel != nil {
		c.cancel()
	}
}
