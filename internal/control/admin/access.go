package admin

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"hecate/internal/control/identity"
)

const (
	accessFile = "admin.json"
	socketFile = "admin.sock"
)

// Access is everything that a command needs to administer a gateway. It is
// kept as a file of mode 0600 in the gateway's data folder, and may be copied
// to another machine.
type Access struct {
	Version     int      `json:"version"`
	Token       string   `json:"token"`
	Fingerprint string   `json:"fingerprint"` // of the swarm's authority, hex
	Addresses   []string `json:"addresses"`   // of the TLS endpoint, host:port
}

const accessVersion = 1

// Grant writes the access file of a data folder, with the token that is there
// already or a new one, and returns it.
func Grant(dir string, fingerprint [32]byte, addresses []string) (Access, error) {
	path := filepath.Join(dir, accessFile)
	a, err := readAccess(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	if a.Token == "" {
		a.Token = "hecate-admin-" + rand.Text()
	}
	a.Version, a.Fingerprint, a.Addresses = accessVersion, identity.FingerprintText(fingerprint), addresses
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return a, fmt.Errorf("keeping the admin token: %w", err)
	}
	return a, identity.WriteSecret(path, append(data, '\n'))
}

func readAccess(path string) (Access, error) {
	var a Access
	data, err := identity.ReadSecret(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	if a.Version != accessVersion || a.Token == "" {
		return a, fmt.Errorf("%s: it was damaged, or is of another version; remove it and restart the gateway", path)
	}
	return a, nil
}

// SocketPath is where a gateway's socket is in its data folder.
func SocketPath(dir string) string { return filepath.Join(dir, socketFile) }
