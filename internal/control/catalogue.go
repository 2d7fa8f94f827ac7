package control

import (
	"context"
	"errors"
	"fmt"
)

// SetDesired changes what is wanted of a node. ErrNotFound: there is no such
// node. A removed node comes back by enrolling anew only.
func SetDesired(ctx context.Context, store Store, node string, want Desired) error {
	return setDesired(ctx, store, node, func(Desired) Desired { return want })
}

// depart removes a node that leaves, unless its operator has changed his mind.
func depart(ctx context.Context, store Store, node string) error {
	return setDesired(ctx, store, node, func(now Desired) Desired {
		if now == DesiredLeaving {
			return DesiredRemoved
		}
		return now
	})
}

// setDesired writes what choose makes of what is wanted now.
func setDesired(ctx context.Context, store Store, node string, choose func(Desired) Desired) error {
	for {
		e, err := store.Get(ctx, BucketNodes, node)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("there is no node %q: hecate node ls lists them: %w", node, ErrNotFound)
		}
		if err != nil {
			return fmt.Errorf("node %q: %w", node, err)
		}
		rec := new(NodeRecord)
		if err := Decode(e.Value, rec); err != nil {
			return err
		}
		want := choose(rec.Desired)
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

// ErrCatalogue is matched when the catalogue cannot be changed as asked, because of
// what else is in it.
var ErrCatalogue = errors.New("the catalogue does not allow it")

// AddModel adds a model, or changes how one of that name and content is placed.
// The content of a name does not change while it is served: its layers would be
// mixed with those that nodes hold.
func AddModel(ctx context.Context, store Store, rec *ModelRecord) error {
	have, err := Models(ctx, store)
	if err != nil {
		return err
	}
	fallback := rec.Spec.FallbackFor == ""
	for _, m := range have {
		if m.ID == rec.ID && m.Hash != rec.Hash {
			return fmt.Errorf("%w: there is a model %q with other content; take it out first, or choose another name", ErrCatalogue, rec.ID)
		}
		if m.ID == rec.ID {
			rec.Created, rec.Demo = m.Created, m.Demo
		}
		fallback = fallback || m.ID == rec.Spec.FallbackFor && m.ID != rec.ID
	}
	if !fallback {
		return fmt.Errorf("%w: %q is to stand in for %q, which is no other model of it", ErrCatalogue, rec.ID, rec.Spec.FallbackFor)
	}
	if by := circle(have, rec); by != "" {
		return fmt.Errorf("%w: %q is to stand in for %q, and in the end for itself, by %q", ErrCatalogue, rec.ID, rec.Spec.FallbackFor, by)
	}
	return PutModel(ctx, store, rec)
}

// circle is the model that stands in for another one that is to stand in for it,
// perhaps by others; "": none does.
func circle(have []*ModelRecord, rec *ModelRecord) string {
	standsInFor := map[string]string{}
	for _, m := range have {
		standsInFor[m.ID] = m.Spec.FallbackFor
	}
	by := rec.Spec.FallbackFor
	for range have {
		next := standsInFor[by]
		if next == rec.ID {
			return by
		}
		by = next
	}
	return ""
}

// WithdrawModel takes a model out, unless another one needs it in the catalogue.
func WithdrawModel(ctx context.Context, store Store, id string) error {
	have, err := Models(ctx, store)
	if err != nil {
		return err
	}
	known := false
	for _, m := range have {
		known = known || m.ID == id
		if m.Spec.FallbackFor == id {
			return fmt.Errorf("%w: %q stands in for %q; take that out first", ErrCatalogue, m.ID, id)
		}
	}
	if !known {
		return fmt.Errorf("model %q: %w", id, ErrNotFound)
	}
	return RemoveModel(ctx, store, id)
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
