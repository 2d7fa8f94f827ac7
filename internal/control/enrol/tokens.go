package enrol

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hecate/internal/control"
)

// DefaultTokenLife is how long a token is good when nobody says otherwise.
const DefaultTokenLife = 24 * time.Hour

// maxUses bounds one token to a swarm's size.
const maxUses = 10_000

// tokenKey is where a token lives in the keys bucket.
const tokenKey = "join/"

// A TokenRecord is what the swarm keeps of a token: enough to check it, not
// enough to make it.
type TokenRecord struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Hash    string    `json:"hash"` // SHA-256 of the secret, hex
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`           // machines it lets in
	Used    int       `json:"used"`           // machines it has let in
	Note    string    `json:"note,omitempty"` // for people
	// Pending are the keys of machines that used it and are not on record yet: the
	// gateway had trouble in between, and they use nothing when they ask again.
	Pending []string `json:"pending,omitempty"`
}

// Why a token lets nobody in.
var (
	ErrTokenUnknown = errors.New("the swarm does not know this token, or it was revoked")
	ErrTokenExpired = errors.New("this token has expired")
	ErrTokenUsedUp  = errors.New("this token has let in as many machines as it may")
)

// Tokens administers the swarm's join tokens.
type Tokens struct{ store control.Store }

// NewTokens administers the tokens in a store.
func NewTokens(store control.Store) *Tokens { return &Tokens{store: store} }

// TokenOptions say what a new token allows.
type TokenOptions struct {
	Addresses []string      // of the gateways' enrolment endpoints, host:port
	Uses      int           // 0: 1
	Life      time.Duration // 0: DefaultTokenLife
	Note      string
}

// Create makes a token and records it.
func (ts *Tokens) Create(ctx context.Context, fingerprint [sha256.Size]byte, o TokenOptions) (Token, error) {
	if o.Uses == 0 {
		o.Uses = 1
	}
	if o.Life == 0 {
		o.Life = DefaultTokenLife
	}
	if o.Uses < 0 || o.Uses > maxUses || o.Life < 0 {
		return Token{}, fmt.Errorf("a token for %d machines and %s, want 1 to %d and a time above 0", o.Uses, o.Life, maxUses)
	}
	t, err := NewToken(fingerprint, o.Addresses, o.Uses, time.Now().Add(o.Life))
	if err != nil {
		return Token{}, err
	}
	rec := TokenRecord{
		Version: control.DocumentVersion, ID: t.ID(), Hash: secretHash(t.Secret[:]),
		Created: time.Now().UTC(), Expires: t.Expires, Uses: o.Uses, Note: o.Note,
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return Token{}, fmt.Errorf("recording a token: %w", err)
	}
	if _, err := ts.store.Create(ctx, control.BucketKeys, tokenKey+rec.ID, data); err != nil {
		return Token{}, fmt.Errorf("recording a token: %w", err)
	}
	return t, nil
}

// List returns all tokens, also used and expired ones, in id order.
func (ts *Tokens) List(ctx context.Context) ([]TokenRecord, error) {
	entries, err := ts.store.List(ctx, control.BucketKeys)
	if err != nil {
		return nil, fmt.Errorf("listing the tokens: %w", err)
	}
	var out []TokenRecord
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, tokenKey) {
			continue
		}
		rec, err := decodeToken(e.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// Revoke makes a token worthless. Machines that it let in stay.
func (ts *Tokens) Revoke(ctx context.Context, id string) error {
	if err := ts.store.Delete(ctx, control.BucketKeys, tokenKey+id, 0); err != nil {
		if errors.Is(err, control.ErrNotFound) {
			return fmt.Errorf("there is no join token %q; `hecate token ls` lists them: %w", id, ErrTokenUnknown)
		}
		return fmt.Errorf("revoking token %q: %w", id, err)
	}
	return nil
}

// spend uses a token once for the machine with this key. Asked again before
// settle, it uses nothing more. Several gateways may do so at the same time.
func (ts *Tokens) spend(ctx context.Context, secret []byte, key string) error {
	return ts.change(ctx, secret, func(rec *TokenRecord) (bool, error) {
		if slices.Contains(rec.Pending, key) && rec.known(secret) {
			return false, nil
		}
		if err := rec.check(secret, time.Now()); err != nil {
			return false, err
		}
		rec.Used++
		rec.Pending = append(rec.Pending, key)
		return true, nil
	})
}

// settle says that the machine with this key is on record: from now on the token
// does nothing for it that it would not do for others.
func (ts *Tokens) settle(ctx context.Context, secret []byte, key string) error {
	return ts.change(ctx, secret, func(rec *TokenRecord) (bool, error) {
		before := len(rec.Pending)
		rec.Pending = slices.DeleteFunc(rec.Pending, func(k string) bool { return k == key })
		return len(rec.Pending) < before, nil
	})
}

// change replaces a token's record by what how makes of it, if it says so.
func (ts *Tokens) change(ctx context.Context, secret []byte, how func(*TokenRecord) (bool, error)) error {
	name := tokenKey + secretID(secret)
	for {
		e, err := ts.store.Get(ctx, control.BucketKeys, name)
		if errors.Is(err, control.ErrNotFound) {
			return ErrTokenUnknown
		}
		if err != nil {
			return fmt.Errorf("%w: checking a token: %w", ErrGateway, err)
		}
		rec, err := decodeToken(e.Value)
		if err != nil {
			return err
		}
		if changed, err := how(&rec); err != nil || !changed {
			return err
		}
		data, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("spending a token: %w", err)
		}
		_, err = ts.store.CompareAndSet(ctx, control.BucketKeys, name, data, e.Revision)
		if err == nil {
			return nil
		}
		if !errors.Is(err, control.ErrConflict) {
			return fmt.Errorf("%w: spending a token: %w", ErrGateway, err)
		}
	}
}

func (r TokenRecord) known(secret []byte) bool {
	return subtle.ConstantTimeCompare([]byte(r.Hash), []byte(secretHash(secret))) == 1
}

func (r TokenRecord) check(secret []byte, now time.Time) error {
	switch {
	case !r.known(secret):
		return ErrTokenUnknown
	case !now.Before(r.Expires):
		return fmt.Errorf("%w on %s", ErrTokenExpired, r.Expires.Format(time.RFC3339))
	case r.Used >= r.Uses:
		return fmt.Errorf("%w (%d)", ErrTokenUsedUp, r.Uses)
	}
	return nil
}

func decodeToken(data []byte) (TokenRecord, error) {
	var r TokenRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading a token's record: %w", err)
	}
	if r.Version < 1 || r.Version > control.DocumentVersion {
		return r, fmt.Errorf("token record of version %d, this program reads 1 to %d", r.Version, control.DocumentVersion)
	}
	return r, nil
}
