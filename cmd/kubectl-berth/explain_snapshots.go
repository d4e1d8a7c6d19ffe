package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

// addSnapshots reads the VolumeSnapshots that claims of the namespace are to be made
// from, and Berth's Snapshots. If there is no such claim it reads nothing: a cluster may
// not have VolumeSnapshots at all.
func addSnapshots(ctx context.Context, q question, to *schedule.Lists) error {
	for i := range to.Claims {
		claim := &to.Claims[i]
		name := schedule.RestoredFrom(claim)
		if name == "" || claim.Namespace != q.namespace || claim.Spec.VolumeName != "" {
			continue
		}
		found, err := schedule.Cached{Reader: q.reader}.VolumeSnapshot(ctx, q.namespace, name)
		switch {
		case errors.Is(err, schedule.ErrNoVolumeSnapshots):
			return nil
		case apierrors.IsForbidden(err):
			_, err := fmt.Fprintf(q.notes, "note: VolumeSnapshots in namespace %s, or their contents, may not be read: where they are is not considered\n", q.namespace)
			return err
		case err != nil:
			return fmt.Errorf("reading snapshot %s/%s: %w", q.namespace, name, err)
		}
		if to.VolumeSnapshots == nil {
			to.VolumeSnapshots = []schedule.VolumeSnapshot{}
		}
		if found != nil {
			to.VolumeSnapshots = append(to.VolumeSnapshots, *found)
		}
	}
	if len(to.VolumeSnapshots) == 0 {
		return nil
	}
	var snapshots v1alpha1.SnapshotList
	if err := q.reader.List(ctx, &snapshots); err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	to.Snapshots = snapshots.Items
	return nil
}
