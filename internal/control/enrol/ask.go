package enrol

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"hecate/internal/control/identity"
)

// searchEvery spaces searches of the network: they are loud, and slow.
const searchEvery = 10 * time.Second

// ask puts a request to the known gateways; when none of them can be reached,
// to those that the network knows of.
func (e *Enrolment) ask(ctx context.Context, authority [32]byte, path string, conf *tls.Config, in, out any) error {
	known := e.gateways()
	err := post(ctx, known, path, conf, in, out)
	var nobody unreachable
	if err == nil || !errors.As(err, &nobody) || e.find == nil || allLocal(known) || !e.maySearch() {
		return err
	}
	found := e.find(ctx, authority)
	if len(found) == 0 {
		return err
	}
	if err := post(ctx, found, path, conf, in, out); err != nil {
		return err
	}
	e.know(found)
	return nil
}

func (e *Enrolment) maySearch() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.searched.IsZero() && time.Since(e.mu.searched) < searchEvery {
		return false
	}
	e.mu.searched = time.Now()
	return true
}

// allLocal reports whether the whole swarm is on this machine: then it is not
// to be looked for elsewhere.
func allLocal(addresses []string) bool {
	for _, a := range addresses {
		host, _, err := net.SplitHostPort(a)
		if ip, perr := netip.ParseAddr(host); err != nil || host != "localhost" && (perr != nil || !ip.IsLoopback()) {
			return false
		}
	}
	return len(addresses) > 0
}

// post asks the gateways in turn. What a gateway refuses, another will not
// grant; one that cannot be reached, or has trouble, is passed over.
func post(ctx context.Context, gateways []string, path string, conf *tls.Config, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("asking a gateway: %w", err)
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true},
		Timeout:   answerWithin,
	}
	var failures unreachable
	for _, address := range gateways {
		// The zone of a link-local address ("%eth0") is escaped in a URL.
		err := postOne(ctx, client, "https://"+strings.ReplaceAll(address, "%", "%25")+path, body, out)
		if err == nil {
			return nil
		}
		var refused *refusedError
		if errors.As(err, &refused) && !errors.Is(err, ErrGateway) {
			return err
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the address is said below
		}
		if fault := identity.ClockFault(err); fault != nil {
			err = fault
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	return failures
}

// unreachable is why none of the gateways answered, in one line.
type unreachable []error

func (u unreachable) Error() string {
	if len(u) == 0 {
		return "no gateway's address is known"
	}
	parts := make([]string, len(u))
	for i, err := range u {
		if errors.Is(err, ErrClock) { // it runs, and there
			return err.Error()
		}
		parts[i] = err.Error()
	}
	return "no gateway could be asked (" + strings.Join(parts, "; ") + "): is it running, and is its address right?"
}

func (u unreachable) Unwrap() []error { return u }

func postOne(ctx context.Context, client *http.Client, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return decodeRefusal(resp.StatusCode, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%w: its answer is unreadable: %w", ErrGateway, err)
	}
	return nil
}
