package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/doctor"
	"berth.dev/berth/internal/schedule"
)

// addAllSnapshots reads Berth's Snapshots.
func addAllSnapshots(ctx context.Context, q question, to *schedule.Lists) error {
	var snapshots v1alpha1.SnapshotList
	if err := q.reader.List(ctx, &snapshots); err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	to.Snapshots = snapshots.Items
	return nil
}

// snapshotAPI reads the objects of the snapshot API; nil if the cluster does not have them, or they may not
// be read.
func snapshotAPI(ctx context.Context, q question) (*doctor.SnapshotAPI, error) {
	found := &doctor.SnapshotAPI{}
	for _, each := range []struct {
		kind schema.GroupVersionKind
		to   *[]unstructured.Unstructured
	}{{schedule.VolumeSnapshotContentKind, &found.Contents}, {schedule.VolumeSnapshotKind, &found.VolumeSnapshots}} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(each.kind.GroupVersion().WithKind(each.kind.Kind + "List"))
		err := q.reader.List(ctx, &list)
		switch {
		case meta.IsNoMatchError(err):
			return nil, nil
		case apierrors.IsForbidden(err):
			_, err := fmt.Fprintf(q.notes, "note: %ss may not be read: what they refer to is not considered\n", each.kind.Kind)
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("listing %ss: %w", each.kind.Kind, err)
		}
		*each.to = list.Items
	}
	return found, nil
}

// examine compares all objects of one look.
func examine(ctx context.Context, q question) ([]doctor.Finding, error) {
	found, err := gather(ctx, q)
	if err != nil {
		return nil, err
	}
	return examined(ctx, q, doctor.Cluster{Lists: found.Lists, Heartbeats: found.Heartbeats, System: q.system})
}

// examined adds the snapshots to what was read, and compares all.
func examined(ctx context.Context, q question, c doctor.Cluster) (found []doctor.Finding, err error) {
	if err := addAllSnapshots(ctx, q, c.Lists); err != nil {
		return nil, err
	}
	if c.SnapshotAPI, err = snapshotAPI(ctx, q); err != nil {
		return nil, err
	}
	return doctor.Examine(c), nil
}
