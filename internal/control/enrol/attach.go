package enrol

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// duplicateWait is how long a process that may share a node's key has to
// answer: a living one needs a round trip.
const duplicateWait = 1500 * time.Millisecond

// attach records what a started node says of itself, and gives it its
// incarnation. A second process with the same key is refused while the first
// one answers.
func (s *Server) attach(r *http.Request, in AttachRequest) (Attached, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return Attached{}, fmt.Errorf("%w: no certificate was shown", ErrUnknown)
	}
	id, err := identity.OfPeer(*r.TLS)
	if err != nil {
		return Attached{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if id.Role != identity.RoleNode || in.Instance == "" || len(in.Instance) > maxAddress {
		return Attached{}, fmt.Errorf("%w: %s is no node, or names no instance", ErrBad, id)
	}
	key, err := identity.KeyFingerprint(r.TLS.PeerCertificates[0].PublicKey)
	if err != nil {
		return Attached{}, fmt.Errorf("%w: %w", ErrBad, err)
	}
	observed := remoteIP(r)
	in.Profile.ID = id.Name
	in.Profile.Endpoints = substitute(in.Profile.Endpoints, observed)
	token, err := s.cfg.BusToken(id.Name, in.BusKey)
	if err != nil {
		return Attached{}, fmt.Errorf("%w: %w", ErrBad, err)
	}
	rec, err := s.register(r.Context(), id.Name, key, in)
	if err != nil {
		return Attached{}, err
	}
	return Attached{
		Incarnation: rec.Incarnation, Desired: rec.Desired,
		Bus: s.cfg.BusServers(seen(r)), BusToken: token, BusTrust: s.cfg.BusTrust,
		Gateways: s.cfg.Gateways(seen(r)), Observed: observed.String(), Time: time.Now(),
	}, nil
}

func (s *Server) register(ctx context.Context, name, key string, in AttachRequest) (*control.NodeRecord, error) {
	for {
		rec, revision, err := s.member(ctx, name, key)
		if err != nil {
			return nil, err
		}
		if rec.Instance != in.Instance {
			if err := s.refuseDuplicate(ctx, rec); err != nil {
				return nil, err
			}
			rec.Incarnation, rec.Instance = rec.Incarnation+1, in.Instance
		}
		rec.Profile, rec.Reverse, rec.Exactness = in.Profile, in.Reverse, in.Exactness
		rec.Host, rec.PID = in.Host, in.PID
		err = s.put(ctx, rec, revision)
		if !errors.Is(err, control.ErrConflict) {
			return rec, err
		}
	}
}

func (s *Server) refuseDuplicate(ctx context.Context, rec *control.NodeRecord) error {
	if !rec.Started() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, duplicateWait)
	defer cancel()
	who, err := control.AskWho(ctx, s.cfg.Bus, rec.ID)
	if err != nil {
		return nil //nolint:nilerr // nobody there is what we hope for
	}
	return fmt.Errorf("%w: %q runs on %s as process %d; stop it, or start this one with a data folder of its own",
		ErrDuplicate, rec.ID, who.Host, who.PID)
}

// remoteIP is the client's address as we see it.
func remoteIP(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return ap.Addr().Unmap().WithZone("")
}

// substitute puts the observed address where an endpoint says "any".
func substitute(endpoints []string, observed netip.Addr) []string {
	var out []string
	for _, e := range endpoints {
		host, port, err := net.SplitHostPort(e)
		if ip, perr := netip.ParseAddr(host); err == nil && (host == "" || perr == nil && ip.IsUnspecified()) {
			e = net.JoinHostPort(observed.String(), port)
		}
		out = append(out, e)
	}
	return out
}
