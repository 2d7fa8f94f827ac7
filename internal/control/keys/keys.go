// Package keys is the swarm's API keys: made once and shown once, kept as
// hashes, checked without asking the store, revoked without a restart.
package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hecate/internal/control"
)

const (
	// prefix makes keys recognisable to people and to scanners for leaks. It
	// begins as client libraries expect.
	prefix     = "sk-hecate-"
	secretSize = 20
	idDigits   = 12
	storeKey   = "api/"
	maxNote    = 200
	// MaxRate is the highest limit that can be set, in requests per minute.
	MaxRate = 1_000_000
	// MaxTokenRate likewise, in tokens per minute.
	MaxTokenRate = 1_000_000_000
	maxModels    = 64
)

var (
	// ErrUnknown: no such key, or it was revoked.
	ErrUnknown = errors.New("the swarm does not know this API key, or it was revoked")
	// ErrExpired: the key was good until a day that is over.
	ErrExpired = errors.New("this API key has expired")
)

// A Record is what the swarm keeps of a key: enough to check it, not enough to
// make it.
type Record struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`   // 12 hex digits of the hash: names the key in lists and logs
	Hash    string    `json:"hash"` // SHA-256 of the key, hex
	Note    string    `json:"note,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	// Limits of this key; 0 means none.
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerMinute   int `json:"tokens_per_minute,omitempty"` // of prompts and answers together
	Concurrent        int `json:"concurrent,omitempty"`        // requests at the same time
	// Models are those that it is for; none: all.
	Models []string `json:"models,omitempty"`
}

// Limited says whether requests of the key must be counted.
func (r *Record) Limited() bool {
	return r.RequestsPerMinute > 0 || r.TokensPerMinute > 0 || r.Concurrent > 0
}

// Allows says whether the key is for a model.
func (r *Record) Allows(model string) bool {
	return len(r.Models) == 0 || slices.Contains(r.Models, model)
}

// Options say what a new key allows.
type Options struct {
	Note              string
	Life              time.Duration // 0: for ever
	RequestsPerMinute int           // 0: no limit
	TokensPerMinute   int           // 0: no limit
	Concurrent        int           // 0: no limit
	Models            []string      // none: all
}

// Validate says what no key can be made of.
func (o Options) Validate() error {
	switch {
	case len(o.Note) > maxNote || strings.ContainsFunc(o.Note, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("a note of at most %d printable characters", maxNote)
	case o.Life < 0:
		return fmt.Errorf("a key's life of %s, want 0 (for ever) or more", o.Life)
	case o.RequestsPerMinute < 0 || o.RequestsPerMinute > MaxRate:
		return fmt.Errorf("%d requests per minute, want 0 (no limit) to %d", o.RequestsPerMinute, MaxRate)
	case o.TokensPerMinute < 0 || o.TokensPerMinute > MaxTokenRate:
		return fmt.Errorf("%d tokens per minute, want 0 (no limit) to %d", o.TokensPerMinute, MaxTokenRate)
	case len(o.Models) > maxModels:
		return fmt.Errorf("%d models, at most %d", len(o.Models), maxModels)
	case o.Concurrent < 0 || o.Concurrent > MaxRate:
		return fmt.Errorf("%d requests at the same time, want 0 (no limit) to %d", o.Concurrent, MaxRate)
	}
	for _, m := range o.Models {
		if err := control.ValidateForeignModel(m); err != nil {
			return err
		}
	}
	return nil
}

// Create makes a key and returns it: it cannot be shown again.
func Create(ctx context.Context, store control.Store, o Options) (key string, r Record, err error) {
	if err := o.Validate(); err != nil {
		return "", r, fmt.Errorf("API key: %w", err)
	}
	secret := make([]byte, secretSize)
	if _, err := rand.Read(secret); err != nil {
		return "", r, fmt.Errorf("making an API key: %w", err)
	}
	key = prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
	hash := hashOf(key)
	r = Record{
		Version: control.DocumentVersion, ID: hash[:idDigits], Hash: hash, Note: o.Note, Created: time.Now().UTC(),
		RequestsPerMinute: o.RequestsPerMinute, TokensPerMinute: o.TokensPerMinute, Concurrent: o.Concurrent, Models: o.Models,
	}
	if o.Life > 0 {
		r.Expires = r.Created.Add(o.Life)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return "", r, fmt.Errorf("recording an API key: %w", err)
	}
	if _, err := store.Create(ctx, control.BucketKeys, storeKey+r.ID, data); err != nil {
		return "", r, fmt.Errorf("recording an API key: %w", err)
	}
	return key, r, nil
}

// List returns all keys, expired ones too, in id order.
func List(ctx context.Context, store control.Store) ([]Record, error) {
	entries, err := store.List(ctx, control.BucketKeys)
	if err != nil {
		return nil, fmt.Errorf("listing the API keys: %w", err)
	}
	var out []Record
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, storeKey) {
			continue
		}
		r, err := decode(e.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Revoke makes a key worthless, in every gateway, within a moment.
func Revoke(ctx context.Context, store control.Store, id string) error {
	err := store.Delete(ctx, control.BucketKeys, storeKey+id, 0)
	if errors.Is(err, control.ErrNotFound) {
		return fmt.Errorf("there is no API key %q; `hecate key ls` lists them: %w", id, ErrUnknown)
	}
	if err != nil {
		return fmt.Errorf("revoking API key %q: %w", id, err)
	}
	return nil
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func decode(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading an API key's record: %w", err)
	}
	if r.Version < 1 || r.Version > control.DocumentVersion || len(r.Hash) != 2*sha256.Size || r.ID != r.Hash[:idDigits] {
		return r, errors.New("reading an API key's record: it was damaged, or is of a newer program")
	}
	return r, nil
}

// check compares a key with a record.
func (r *Record) check(hash string, now time.Time) error {
	switch {
	case subtle.ConstantTimeCompare([]byte(r.Hash), []byte(hash)) != 1:
		return ErrUnknown
	case !r.Expires.IsZero() && !now.Before(r.Expires):
		return fmt.Errorf("%w on %s", ErrExpired, r.Expires.Format(time.DateOnly))
	}
	return nil
}
