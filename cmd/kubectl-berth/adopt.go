package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quarantine"
)

func newAdoptCommand(t *target, open opener) *cobra.Command {
	w, all := adoptionWish{}, bulk{}
	cmd := &cobra.Command{
		Use:   "adopt NODE NAME | adopt --all",
		Short: "Make the objects anew for data that is on a node",
		Long: `Make the objects anew for data that is on a node.

For a volume: a Volume, and a PersistentVolume that retains it. One that is there
and whose claim is gone is kept for the claim that is named.
For a snapshot: a Snapshot, and on request the manifests of a
VolumeSnapshotContent that retains it and a VolumeSnapshot.

The data is neither copied, formatted nor taken again. What is there already is
left; repeating the command does no harm.

With --all: for all data without objects, of the cluster or of one --node. A volume
goes to the claim of its PersistentVolume, else to the claim that has the uid in its
name, else to the claim in the record beside the data. Without --yes the command
prints its plan and does nothing. What is ambiguous is refused, with the reason.`,
		Example: `  # Adopt a volume for the claim shop/db, which may be made later.
  kubectl berth adopt node-3 pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f --claim shop/db

  # Adopt a snapshot, and make it the VolumeSnapshot shop/before-upgrade.
  kubectl berth adopt node-3 snap-7d0e3a52-9b1c-4f6e-a2d7-c5b8e1f40396 \
    --volume-snapshot shop/before-upgrade | kubectl apply -f -

  # Show how all data of a cluster that lost its objects would be adopted; then do it.
  kubectl berth adopt --all
  kubectl berth adopt --all --yes`,
		Args: all.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := all.check(cmd); err != nil {
				return err
			}
			c, namespace, err := open(*t)
			if err != nil {
				return err
			}
			if all.wanted {
				return all.run(cmd, c, w)
			}
			w.node, w.name = args[0], args[1]
			if v1alpha1.IsSnapshotName(w.name) {
				return w.adoptSnapshot(cmd, c, namespace)
			}
			return w.adoptVolume(cmd, c, namespace)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.claim, "claim", "", "claim that the PersistentVolume is kept for, as NAME or NAMESPACE/NAME; empty means any that matches")
	flags.StringVar(&w.poolClass, "pool-class", "", "PoolClass of the Volume or Snapshot; needed where its pool serves several and no Volume makes way")
	flags.StringVar(&w.storageClass, "storage-class", "", "StorageClass of the PersistentVolume; empty means the claim's, or none")
	flags.StringVar(&w.volumeSnapshot, "volume-snapshot", "", "print the manifests of a VolumeSnapshot of that name, as NAME or NAMESPACE/NAME")
	all.flags(cmd)
	cmd.ValidArgsFunction = completeOrphans(t, open)
	return cmd
}

// adoptionWish holds the arguments and flags of the command.
type adoptionWish struct {
	node, name, poolClass string
	claim, storageClass   string // of a volume
	volumeSnapshot        string // of a snapshot
}

func (w adoptionWish) adoptVolume(cmd *cobra.Command, c client.Client, namespace string) error {
	if w.volumeSnapshot != "" {
		return fmt.Errorf("--volume-snapshot is for snapshots, and %s is none", w.name)
	}
	claim, err := claimNamed(w.claim, namespace)
	if err != nil {
		return err
	}
	a := quarantine.Adoption{Node: w.node, Name: w.name, PoolClass: w.poolClass, StorageClass: w.storageClass, Claim: claim}
	done, err := quarantine.Adopt(cmd.Context(), c, a)
	if err != nil {
		return err
	}
	return tell(cmd.OutOrStdout(), done)
}

// claimNamed returns a claim in the form in which a PersistentVolume refers to it; nil for none.
func claimNamed(s, namespace string) (*corev1.ObjectReference, error) {
	if s == "" {
		return nil, nil
	}
	key, err := named("--claim", s, namespace)
	if err != nil {
		return nil, err
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: key.Namespace, Name: key.Name}, nil
}

// named parses the value of a flag: NAME, in the default namespace, or
// NAMESPACE/NAME.
func named(flag, s, namespace string) (types.NamespacedName, error) {
	name := s
	if before, after, found := strings.Cut(s, "/"); found {
		namespace, name = before, after
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%s %q is neither NAME nor NAMESPACE/NAME", flag, s)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// made says whether an object was made now.
func made(now bool) string {
	if now {
		return "made"
	}
	return "there already"
}

func tell(w io.Writer, done quarantine.Adopted) error {
	v, pv := done.Volume, done.PersistentVolume
	use := fmt.Sprintf("a claim with spec.volumeName %s and storageClassName %q", pv.Name, pv.Spec.StorageClassName)
	if pv.Spec.ClaimRef != nil {
		use = fmt.Sprintf("claim %s/%s", pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	}
	if done.Rebound {
		use += " from now on"
	}
	_, err := fmt.Fprintf(w, `Volume %s: %s, %s of PoolClass %s
PersistentVolume %s: %s, %s, for %s
Whether the data was found: kubectl get bvol %s
`, v.Name, made(done.NewVolume), v.Spec.Capacity.String(), v.Spec.PoolClass,
		pv.Name, made(done.NewPersistentVolume), pv.Spec.PersistentVolumeReclaimPolicy, use, v.Name)
	return err
}
