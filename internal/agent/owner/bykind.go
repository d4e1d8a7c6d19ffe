package owner

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/record"
)

// ByKind is the Owner of an agent whose volumes differ in kind. A volume with one copy passes through,
// without a word to the API server. A volume whose epochs must be taken goes to its own Owner.
type ByKind struct {
	// Wishes are the specs of volumes, as far as the node knows them.
	Wishes staging.Wishes
	// Default is the kind of volumes whose spec the node does not know now.
	Default ownership.Kind
	// OneCopy owns volumes without epochs.
	OneCopy staging.Owner
	// Epochs owns the others; nil if this agent serves none.
	Epochs staging.Owner
	// Kept says whether the node keeps knowledge about epochs of a volume. It goes with Epochs.
	Kept func(id string) (bool, error)
}

var _ staging.Owner = ByKind{}

// of returns the Owner of a volume. What the node itself keeps decides before the kind that is assumed.
func (b ByKind) of(ctx context.Context, id string) (staging.Owner, error) {
	kind := b.Default
	spec := b.Wishes.Spec(ctx, id)
	switch {
	case spec != nil:
		var ok bool
		if kind, ok = record.KindOf(spec.Replication.Kind); !ok {
			return nil, fmt.Errorf("%w: volume %s has replicas of kind %.40q, which this agent does not know", provision.ErrUnsupported, id, spec.Replication.Kind)
		}
	case b.Epochs != nil:
		kept, err := b.Kept(id)
		if err != nil {
			return nil, err
		}
		if kept {
			return b.Epochs, nil
		}
	}
	switch {
	case !kind.Traits().Owned:
		return b.OneCopy, nil
	case b.Epochs == nil:
		return nil, fmt.Errorf("%w: volume %s has replicas of kind %v, of which one node at a time may write, and this agent serves volumes with one copy only",
			provision.ErrUnsupported, id, kind)
	}
	return b.Epochs, nil
}

// Prepare implements staging.Owner.
func (b ByKind) Prepare(ctx context.Context, id string, step func(context.Context) error) error {
	o, err := b.of(ctx, id)
	if err != nil {
		return err
	}
	return o.Prepare(ctx, id, step)
}

// Fetch implements staging.Owner.
func (b ByKind) Fetch(ctx context.Context, id string) error {
	o, err := b.of(ctx, id)
	if err != nil {
		return err
	}
	return o.Fetch(ctx, id)
}

// Take implements staging.Owner.
func (b ByKind) Take(ctx context.Context, id string, use func(context.Context) error) error {
	o, err := b.of(ctx, id)
	if err != nil {
		return err
	}
	return o.Take(ctx, id, use)
}

// Holds implements staging.Owner.
func (b ByKind) Holds(ctx context.Context, id, target string, use func(context.Context) error) error {
	o, err := b.of(ctx, id)
	if err != nil {
		return err
	}
	return o.Holds(ctx, id, target, use)
}

// Give implements staging.Owner. A volume that no Owner here could have taken only comes off.
func (b ByKind) Give(ctx context.Context, id string, off staging.Off) error {
	o, err := b.of(ctx, id)
	if err != nil {
		o = b.OneCopy
	}
	return o.Give(ctx, id, off)
}
