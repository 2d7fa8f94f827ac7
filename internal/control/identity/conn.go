package identity

import (
	"context"
	"net"
)

type connKey struct{}

// WithConn is for http.Server.ConnContext: handlers find their connection.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf is the connection that a request came on; nil where the server does not
// keep it.
func ConnOf(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return c
}
