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
	if may, err = mayAsk(ctx, o.c.World, volume, asker); err != nil || !may {
		return ownership.Peer{}, false, err
	}
	k, _, err := o.c.World.Load(volume)
	if err != nil {
		return ownership.Peer{}, false, err
	}
	return ownership.Peer{Node: o.c.Node, Copy: k.Copy()}, true, nil
}

// mayAsk says whether the asker may know of a volume. The record is read for each question: a node that
// has left a volume knows nothing of it any more.
func mayAsk(ctx context.Context, w World, volume, asker string) (bool, error) {
	switch {
	case !v1alpha1.IsVolumeName(volume) || asker == "":
		return false, nil
	case asker == cert.Controllers:
		return true, nil
	}
	object, err := w.Read(ctx, volume)
	v, err := record.Read(volume, object, err)
	switch {
	case record.IsAbsent(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("finding out whether node %s may ask: %w", asker, err)
	}
	return v.Primary.Node == asker || slices.ContainsFunc(v.Replicas, func(r ownership.Replica) bool { return r.Node == asker }), nil
}

// Locate returns the disk that a Volume names.
func Locate(v *v1alpha1.Volume) (shared.Disk, error) {
	a := v.Spec.Replication.Attachments
	if a == nil || a.Disk == nil {
		return shared.Disk{}, fmt.Errorf("%w: Volume %s does not say which disk it is (spec.replication.attachments.disk)", provision.ErrUnavailable, v.Name)
	}
	return shared.Disk{Volume: v.Name, Handle: a.Disk.Handle, Identity: provision.Identity(a.Disk.Identity), Persistent: a.Persistent}, nil
}
