package weights

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// throughput is the type of service of what need not be quick.
const throughput = 0x08

// bulk marks what a connection sends as less urgent than the rest, for queues that
// look at that, and lets the kernel hold little of it unsent.
func bulk(c net.Conn) {
	onSocket(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, throughput) // refused for IPv6
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, throughput)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, chunk)
	})
}

// roundTripOf is a connection's round trip now and at its best.
func roundTripOf(c net.Conn) (now, best time.Duration, ok bool) {
	onSocket(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if ok = err == nil && info.Min_rtt > 0; ok {
			now, best = time.Duration(info.Rtt)*time.Microsecond, time.Duration(info.Min_rtt)*time.Microsecond
		}
	})
	return now, best, ok
}

func onSocket(c net.Conn, do func(fd int)) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { do(int(fd)) }) // a closed one is noticed when it is used
		}
	}
}
