package pool

import (
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall does not name.
const tcpNotSentLowat = 0x19

// tuneSocket limits how much the kernel holds unsent, so that control frames
// overtake data below us too. Whatever is not a TCP socket stays as it is.
func tuneSocket(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Older kernels refuse; then PINGs wait a little longer.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, notSentLowat)
	})
}
