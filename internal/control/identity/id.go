package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"hecate/internal/control"
)

// A Role is what an identity may do.
type Role string

// The roles.
const (
	RoleNode    Role = "node"
	RoleGateway Role = "gateway"
)

const scheme = "hecate"

// ErrWrongPeer: the certificate is genuine, but it is not who was expected.
var ErrWrongPeer = errors.New("wrong peer")

// An ID names one member of one swarm.
type ID struct {
	Swarm string
	Role  Role
	Name  string
}

// String is the URI that stands in the certificate.
func (id ID) String() string {
	return scheme + "://" + id.Swarm + "/" + string(id.Role) + "/" + id.Name
}

func (id ID) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: id.Swarm, Path: "/" + string(id.Role) + "/" + id.Name}
}

func (id ID) validate() error {
	if id.Swarm == "" {
		return errors.New("identity without a swarm")
	}
	if id.Role != RoleNode && id.Role != RoleGateway {
		return fmt.Errorf("identity with the role %q", id.Role)
	}
	return control.ValidateNodeName(id.Name)
}

// OfCertificate reads the identity from a certificate. It does not verify it.
func OfCertificate(cert *x509.Certificate) (ID, error) {
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != scheme {
		return ID{}, errors.New("the certificate names no member of a swarm")
	}
	u := cert.URIs[0]
	role, name, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	id := ID{Swarm: u.Host, Role: Role(role), Name: name}
	if !ok {
		return ID{}, fmt.Errorf("the certificate names %q, which is no member", u)
	}
	if err := id.validate(); err != nil {
		return ID{}, fmt.Errorf("the certificate names %q: %w", u, err)
	}
	return id, nil
}

// OfPeer is the identity of a connection's verified peer.
func OfPeer(state tls.ConnectionState) (ID, error) {
	if len(state.VerifiedChains) == 0 {
		return ID{}, errors.New("the peer has no verified certificate")
	}
	return OfCertificate(state.VerifiedChains[0][0])
}

// PeerName is the name of a connection's verified peer. It has the shape that
// the data plane wants for telling whom it talks to.
func PeerName(state tls.ConnectionState) (string, error) {
	id, err := OfPeer(state)
	return id.Name, err
}

// KeyOfPeer is the fingerprint of a connection's verified peer's key.
func KeyOfPeer(state tls.ConnectionState) (string, error) {
	if len(state.VerifiedChains) == 0 {
		return "", errors.New("the peer has no verified certificate")
	}
	return KeyFingerprint(state.VerifiedChains[0][0].PublicKey)
}

// KeyFingerprint is the SHA-256 of a public key (hex): a node's identity
// across all its certificates.
func KeyFingerprint(public any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("fingerprint of a key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// swarmOf derives the swarm's id from its authority's public key: 16 hex
// digits.
func swarmOf(ca *x509.Certificate) string {
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:8])
}
