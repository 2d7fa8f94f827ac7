package control

import (
	"context"
	"errors"
	"fmt"
)

// SetDesired changes what is wanted of a node. ErrNotFound: there is no such
// node. A removed node comes back by enrolling anew only.
func SetDesired(ctx context.Context, store Store, node string, want Desired) error {
	for {
		e, err := store.Get(ctx, BucketNodes, node)
		if err != nil {
			return fmt.Errorf("node %q: %w", node, err)
		}
		rec := new(NodeRecord)
		if err := Decode(e.Value, rec); err != nil {
			return err
		}
		if rec.Desired == want {
			return nil
		}
		if rec.Desired == DesiredRemoved {
			return fmt.Errorf("node %q was removed: join it anew with a token", node)
		}
		rec.Desired = want
		data, err := Encode(rec)
		if err != nil {
			return err
		}
		_, err = store.CompareAndSet(ctx, BucketNodes, node, data, e.Revision)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// PutModel adds a model to the catalogue, or replaces the one of its name.
func PutModel(ctx context.Context, store Store, rec *ModelRecord) error {
	data, err := Encode(rec)
	if err != nil {
		return err
	}
	for {
		e, err := store.Get(ctx, BucketModels, rec.ID)
		switch {
		case errors.Is(err, ErrNotFound):
			_, err = store.Create(ctx, BucketModels, rec.ID, data)
		case err == nil:
			_, err = store.CompareAndSet(ctx, BucketModels, rec.ID, data, e.Revision)
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// RemoveModel takes a model out of the catalogue; the next plan frees it.
func RemoveModel(ctx context.Context, store Store, id string) error {
	if err := store.Delete(ctx, BucketModels, id, 0); err != nil {
		return fmt.Errorf("model %q: %w", id, err)
	}
	return nil
}

// Models lists the catalogue in id order.
func Models(ctx context.Context, store Store) ([]*ModelRecord, error) {
	return list(ctx, store, BucketModels, func() *ModelRecord { return new(ModelRecord) })
}

// Nodes lists all nodes, removed ones too, in id order.
func Nodes(ctx context.Context, store Store) ([]*NodeRecord, error) {
	return list(ctx, store, BucketNodes, func() *NodeRecord { return new(NodeRecord) })
}

func list[D document](ctx context.Context, store Store, b Bucket, empty func() D) ([]D, error) {
	entries, err := store.List(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("listing the bucket %s: %w", b, err)
	}
	var out []D
	for _, e := range entries {
		d := empty()
		if err := Decode(e.Value, d); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", b, e.Key, err)
		}
		out = append(out, d)
	}
	return out, nil
}
