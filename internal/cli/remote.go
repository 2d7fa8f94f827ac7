package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"hecate/internal/gateway/openai"
)

// where is how a client command finds its gateway.
type where struct {
	URL  string `help:"Address of the gateway, such as http://127.0.0.1:8080." placeholder:"URL"`
	Data string `help:"Data folder of a gateway on this machine; its address is read from there." default:"${data}" placeholder:"DIR" type:"path"`
	CA   string `help:"PEM file with the authority of the gateway's certificate; the swarm's own in the data folder is trusted anyway." name:"ca" type:"path" placeholder:"FILE"`
	Key  string `help:"API key, if the gateway wants one." env:"HECATE_API_KEY" placeholder:"KEY"`
}

// addressFile holds, in a gateway's data folder, where it listens now.
const addressFile = "address"

// base finds the gateway's address.
func (w where) base() (string, error) {
	if w.URL != "" {
		if u, err := url.Parse(w.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", usage("--url %s is no address of a gateway, want http://HOST:PORT", w.URL)
		}
		return strings.TrimRight(w.URL, "/"), nil
	}
	b, err := os.ReadFile(filepath.Join(w.Data, addressFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no gateway runs on the data folder %s: start one with `hecate up`, or name one with --url or --data", w.Data)
	}
	if err != nil {
		return "", fmt.Errorf("find the gateway: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// client trusts what the system trusts, and the authority of a swarm on this machine.
func (w where) client() (*http.Client, error) {
	path := w.CA
	if path == "" {
		path = filepath.Join(w.Data, "authority", "ca.crt")
	}
	pem, err := os.ReadFile(path)
	if err != nil && w.CA == "" {
		return http.DefaultClient, nil
	}
	if err != nil {
		return nil, usage("--ca cannot be read: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) && w.CA != "" {
		return nil, usage("--ca %s holds no certificate", w.CA)
	}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}, nil
}

// call sends one request. A status of 400 or more is an error with the
// gateway's own words.
func (w where) call(ctx context.Context, method, path string, body any) (*http.Response, error) {
	base, err := w.base()
	if err != nil {
		return nil, err
	}
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, payload)
	if err != nil {
		return nil, usage("%s is no address of a gateway: %w", base, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if w.Key != "" {
		req.Header.Set("Authorization", "Bearer "+w.Key)
	}
	client, err := w.client()
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the gateway at %s does not answer: %w", base, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, remoteFault(resp)
	}
	return resp, nil
}

func remoteFault(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	var body struct{ Error openai.Error }
	switch known := json.Unmarshal(b, &body) == nil && body.Error.Message != ""; {
	case known && resp.StatusCode == http.StatusUnauthorized:
		return errors.New(body.Error.Message + " Here it goes into --key or $HECATE_API_KEY.")
	case known:
		return errors.New(body.Error.Message)
	}
	return fmt.Errorf("the gateway answered %s", resp.Status)
}

// get decodes one JSON document.
func (w where) get(ctx context.Context, path string, into any) error {
	resp, err := w.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
