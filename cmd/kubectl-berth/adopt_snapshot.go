package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/quarantine"
)

// adoptSnapshot reports its result on standard output; on standard error if it prints manifests.
func (w adoptionWish) adoptSnapshot(cmd *cobra.Command, c client.Client, namespace string) error {
	if w.claim != "" || w.storageClass != "" {
		return fmt.Errorf("--claim and --storage-class are for volumes, and %s is a snapshot", w.name)
	}
	out := cmd.OutOrStdout()
	var as types.NamespacedName
	if w.volumeSnapshot != "" {
		var err error
		if as, err = named("--volume-snapshot", w.volumeSnapshot, namespace); err != nil {
			return err
		}
		out = cmd.ErrOrStderr()
	}
	s, now, err := quarantine.AdoptSnapshot(cmd.Context(), c, quarantine.SnapshotAdoption{Node: w.node, Name: w.name, PoolClass: w.poolClass})
	if err != nil {
		return err
	}
	if err := tellSnapshot(out, s, now); err != nil || w.volumeSnapshot == "" {
		return err
	}
	manifests, err := quarantine.VolumeSnapshot(cmd.Context(), c, s, as)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		text, err := plain.YAML(m.Object)
		if err != nil {
			return fmt.Errorf("writing the manifest of %s: %w", m.GetName(), err)
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

func tellSnapshot(w io.Writer, s *v1alpha1.Snapshot, now bool) error {
	_, err := fmt.Fprintf(w, `Snapshot %s: %s, of volume %s, of PoolClass %s
Whether the data was found: kubectl get bsnap %s
To use it: a VolumeSnapshotContent with snapshotHandle %s; --volume-snapshot NAME prints one
`, s.Name, made(now), s.Spec.Volume, s.Spec.PoolClass, s.Name, s.Name)
	return err
}
