//go:build !linux

package pool

import "net"

// tuneSocket has nothing to set here: TCP_NOTSENT_LOWAT is Linux's.
func tuneSocket(net.Conn) {}
