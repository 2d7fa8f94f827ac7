package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/google/renameio/v2"
)

const (
	pemKey         = "PRIVATE KEY"
	pemCertificate = "CERTIFICATE"
	// maxPEM bounds what is read of a key or certificate file.
	maxPEM = 64 << 10
)

// WriteSecret writes a file that only its owner can read, all or nothing.
func WriteSecret(path string, data []byte) error {
	if err := renameio.WriteFile(path, data, 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// ReadSecret reads a file that must be readable by its owner only.
func ReadSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading a secret: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is readable by others (mode %04o): run chmod 600 on it", path, info.Mode().Perm())
	}
	if info.Size() > maxPEM {
		return nil, fmt.Errorf("%s has %d bytes: that is no key", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a secret: %w", err)
	}
	return data, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

func saveKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	return WriteSecret(path, pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}))
}

func loadKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := ReadSecret(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemKey {
		return nil, fmt.Errorf("%s holds no private key", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a key of another kind (%T)", path, parsed)
	}
	return key, nil
}

// LoadOrMakeKey returns the key in a file, and makes it first when there is no
// such file.
func LoadOrMakeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := loadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = newKey(); err != nil {
		return nil, err
	}
	return key, saveKey(path, key)
}

// EncodeCertificates writes certificates as PEM, leaf first.
func EncodeCertificates(chain ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw})...)
	}
	return out
}

// ParseCertificates reads PEM certificates, at least one, at most four.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for len(chain) < 4 {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading a certificate: %w", err)
		}
		chain, data = append(chain, cert), rest
	}
	if len(chain) == 0 {
		return nil, errors.New("no certificate there")
	}
	return chain, nil
}
