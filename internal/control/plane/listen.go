package plane

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"
)

// ports remembers which free ports were taken, so that a restarted gateway is
// found where it was.
type ports struct {
	path  string
	Ports map[string]int `json:"ports"`
}

func loadPorts(dir string) *ports {
	p := &ports{path: filepath.Join(dir, "ports.json")}
	data, err := os.ReadFile(p.path)
	if err != nil || json.Unmarshal(data, p) != nil || p.Ports == nil {
		p.Ports = map[string]int{} // new, or damaged: ports are found anew
	}
	return p
}

// pick replaces port 0 by the one that was taken last time, if it is free.
func (p *ports) pick(name, listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("the address to listen on: %w", err)
	}
	last := p.Ports[name]
	if port != "0" || last == 0 {
		return listen, nil
	}
	again := net.JoinHostPort(host, strconv.Itoa(last))
	probe, err := net.Listen("tcp", again)
	if err != nil {
		return listen, nil //nolint:nilerr // taken by somebody else meanwhile
	}
	return again, probe.Close()
}

func (p *ports) keep(name string, addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		p.Ports[name] = tcp.Port
	}
}

func (p *ports) save() error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("remembering the ports: %w", err)
	}
	if err := renameio.WriteFile(p.path, data, 0o600); err != nil {
		return fmt.Errorf("remembering the ports: %w", err)
	}
	return nil
}

// advertised is how members reach a listener: under each of the hosts that
// the operator named, else at the listener's own address, else where they
// reached us already.
func advertised(listener net.Addr, hosts []string, seen net.Addr) []string {
	tcp, ok := listener.(*net.TCPAddr)
	if !ok {
		return nil
	}
	if len(hosts) == 0 && !tcp.IP.IsUnspecified() {
		hosts = []string{tcp.IP.String()}
	}
	if at, ok := seen.(*net.TCPAddr); ok && len(hosts) == 0 {
		hosts = []string{at.IP.String()}
	}
	if len(hosts) == 0 {
		hosts = localAddresses()
	}
	var out []string
	for _, h := range hosts {
		out = append(out, net.JoinHostPort(h, strconv.Itoa(tcp.Port)))
	}
	return out
}

// localAddresses are this machine's, those that others can reach first.
func localAddresses() []string {
	var out, loopback []string
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return []string{"127.0.0.1"}
	}
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		switch {
		case !ok || ipnet.IP.IsLinkLocalUnicast():
		case ipnet.IP.IsLoopback():
			loopback = append(loopback, ipnet.IP.String())
		default:
			out = append(out, ipnet.IP.String())
		}
	}
	const enough = 8 // a token stays short enough to copy
	out = append(out, loopback...)
	return out[:min(len(out), enough)]
}
