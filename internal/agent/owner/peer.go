package owner

import (
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/replicate/cert"
)

// Peer answers a controller, or another node, that asks what this one knows of a volume. may is false if
// the asker has no business with it: a controller has, and a node that the record names has. A node that
// knows nothing answers with an empty copy. Peer takes no lock: two nodes that ask each other would wait
// for ever.
func (o *Owner) Peer(ctx context.Context, volume, asker string) (p ownership.Peer, may bool, err error) {
	v, may, err := mayAsk(ctx, o.c.World, volume, asker)
	if !may {
		return ownership.Peer{}, false, err
	}
	l := &look{id: volume}
	if err := o.c.Medium.recall(ctx, o, l); err != nil {
		return ownership.Peer{}, false, err
	}
	p = ownership.Peer{Node: o.c.Node, Copy: l.facts.Copy}
	if err := o.c.Medium.answer(ctx, o, l, asker, v, &p); err != nil {
		return ownership.Peer{}, false, err
	}
	return p, true, nil
}

// mayAsk says whether the asker may know of a volume, and returns the record if it was read for that. It is
// read for each question of a node: one that has left a volume knows nothing of it any more. may is false with
// every error.
func mayAsk(ctx context.Context, w World, volume, asker string) (v *ownership.Volume, may bool, err error) {
	switch {
	case !v1alpha1.IsVolumeName(volume) || asker == "":
		return nil, false, nil
	case asker == cert.Controllers:
		return nil, true, nil
	}
	object, err := w.Read(ctx, volume)
	v, err = record.Read(volume, object, err)
	switch {
	case record.IsAbsent(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("finding out whether node %s may ask: %w", asker, err)
	}
	return v, v.Primary.Node == asker || slices.ContainsFunc(v.Replicas, func(r ownership.Replica) bool { return r.Node == asker }), nil
}

// Locate returns the disk that a Volume names.
func Locate(v *v1alpha1.Volume) (shared.Disk, error) {
	a := v.Spec.Replication.Attachments
	if a == nil || a.Disk == nil {
		return shared.Disk{}, fmt.Errorf("%w: Volume %s does not say which disk it is (spec.replication.attachments.disk)", provision.ErrUnavailable, v.Name)
	}
	return shared.Disk{Volume: v.Name, Handle: a.Disk.Handle, Identity: provision.Identity(a.Disk.Identity), Persistent: a.Persistent, ManyWriters: v.Spec.Sharing == v1alpha1.Shared}, nil
}
