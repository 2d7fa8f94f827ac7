package control

import (
	"context"
	"errors"
)

// A Bucket is one of the store's named collections.
type Bucket string

// The buckets of a swarm.
const (
	BucketNodes  Bucket = "nodes"  // NodeRecord by node id
	BucketModels Bucket = "models" // ModelRecord by model id
	BucketPlan   Bucket = "plan"   // the PlanDocument, under PlanKey
	BucketKeys   Bucket = "keys"   // API keys and join tokens, hashed
	BucketLease  Bucket = "lease"  // who plans
	// BucketEngines holds an EngineRecord by engine id.
	BucketEngines Bucket = "engines"
	// BucketGateways holds a GatewayRecord by gateway name.
	BucketGateways Bucket = "gateways"
)

// Buckets lists every bucket, in the order in which they are created.
var Buckets = []Bucket{BucketNodes, BucketModels, BucketPlan, BucketKeys, BucketLease, BucketEngines, BucketGateways}

// PlanKey is the key of the current plan in BucketPlan.
const PlanKey = "current"

var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the key exists already (Create), or has another revision
	// than the one given (CompareAndSet, Delete).
	ErrConflict = errors.New("changed by someone else")
)

// An Entry is one key's value at one revision. Revisions of a bucket only
// grow, over all its keys and across deletions and restarts.
type Entry struct {
	Key      string
	Value    []byte // owned by the receiver
	Revision uint64 // >= 1
}

// An Update is what a watch delivers: an entry that was written or deleted,
// or, once, the mark that everything which existed before has been delivered.
type Update struct {
	Entry
	Deleted bool // the key is gone; Value is nil
	Synced  bool // the initial values end here; no entry in this one
}

// A Store holds the swarm's durable state; leadership is built on it (see
// AcquireLease). It is the only thing that several
// gateways share. Implementations are safe for concurrent use. Keys are
// non-empty and free of control characters; anything else is allowed in them.
type Store interface {
	// Get returns the newest entry, or ErrNotFound.
	Get(ctx context.Context, b Bucket, key string) (Entry, error)
	// List returns every living entry of the bucket, sorted by key.
	List(ctx context.Context, b Bucket) ([]Entry, error)
	// Create writes a key that must not exist (else ErrConflict) and returns
	// its revision.
	Create(ctx context.Context, b Bucket, key string, value []byte) (uint64, error)
	// CompareAndSet writes a key that must have the given revision (else
	// ErrConflict) and returns the new one.
	CompareAndSet(ctx context.Context, b Bucket, key string, value []byte, revision uint64) (uint64, error)
	// Delete removes a key that must have the given revision (else
	// ErrConflict); revision 0 means whatever it has. A key that does not
	// exist is ErrNotFound.
	Delete(ctx context.Context, b Bucket, key string, revision uint64) error
	// Watch delivers the living entries of the bucket, then one Synced mark,
	// then every later change until ctx ends, when the channel is closed.
	// key "" watches the whole bucket. It is level-triggered: of several
	// changes to one key only the newest is certain to arrive. A reader that
	// lags delays itself only.
	Watch(ctx context.Context, b Bucket, key string) (<-chan Update, error)
}
