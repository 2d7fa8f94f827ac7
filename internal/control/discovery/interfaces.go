package discovery

import (
	"net"
)

// An Interface is a network interface on which a swarm may be found.
type Interface struct {
	net.Interface
	Addresses []net.IP
}

// Interfaces are those that are up, have multicast, and an address. Loopback
// is not among them: who is on this machine needs no discovery.
func Interfaces() []Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	const wanted = net.FlagUp | net.FlagMulticast
	var out []Interface
	for _, i := range all {
		if i.Flags&wanted != wanted || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		if ips := addresses(i); len(ips) > 0 {
			out = append(out, Interface{Interface: i, Addresses: ips})
		}
	}
	return out
}

func addresses(i net.Interface) (out []net.IP) {
	addrs, err := i.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, n.IP)
		}
	}
	return out
}

// has reports whether the interface has an address of a family.
func (i Interface) has(v6 bool) bool {
	for _, ip := range i.Addresses {
		if (ip.To4() == nil) == v6 {
			return true
		}
	}
	return false
}
