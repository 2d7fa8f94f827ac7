package natsbus

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nkeys"
)

// A User is one process's login: a key of its own and the token that says what
// the key may do. The token is replaced while the process runs.
type User struct {
	key     nkeys.KeyPair
	current atomic.Pointer[string]
	// token makes the token anew at each login; nil: the current one is used.
	token func() (string, error)
}

// NewUser makes a login with a new key and no token.
func NewUser() (*User, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("making a user key: %w", err)
	}
	return &User{key: key}, nil
}

// PublicKey is what a token is made for.
func (u *User) PublicKey() string { return publicOf(u.key) }

// SetToken puts a token into use for the next login.
func (u *User) SetToken(token string) { u.current.Store(&token) }

func (u *User) login() (string, error) {
	if u.token != nil {
		return u.token()
	}
	if t := u.current.Load(); t != nil {
		return *t, nil
	}
	return "", errors.New("no token for the control plane yet")
}

func (u *User) sign(nonce []byte) ([]byte, error) { return u.key.Sign(nonce) }
