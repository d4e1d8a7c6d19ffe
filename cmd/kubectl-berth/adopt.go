package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/quarantine"
)

func newAdoptCommand(t *target, open opener) *cobra.Command {
	var (
		a     quarantine.Adoption
		claim string
	)
	cmd := &cobra.Command{
		Use:   "adopt NODE VOLUME",
		Short: "Make the objects anew for data that is on a node",
		Long: `Make the objects anew for data that is on a node: a Volume, and a
PersistentVolume that retains it. The data is neither copied nor formatted. What
is there already is left; repeating the command does no harm.`,
		Example: `  # Adopt a volume for the claim shop/db, which may be made later.
  kubectl berth adopt node-3 pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f --claim shop/db`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := open(*t)
			if err != nil {
				return err
			}
			a.Node, a.Name = args[0], args[1]
			if a.Claim, err = claimNamed(claim, namespace); err != nil {
				return err
			}
			done, err := quarantine.Adopt(cmd.Context(), c, a)
			if err != nil {
				return err
			}
			return tell(cmd.OutOrStdout(), done)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&claim, "claim", "", "claim that the PersistentVolume is kept for, as NAME or NAMESPACE/NAME; empty means any that matches")
	flags.StringVar(&a.PoolClass, "pool-class", "", "PoolClass of the Volume; needed where its pool serves several")
	flags.StringVar(&a.StorageClass, "storage-class", "", "StorageClass of the PersistentVolume; empty means the claim's, or none")
	return cmd
}

// claimNamed is a claim in the form that a PersistentVolume refers to it; nil for none.
func claimNamed(s, namespace string) (*corev1.ObjectReference, error) {
	if s == "" {
		return nil, nil
	}
	name := s
	if before, after, found := strings.Cut(s, "/"); found {
		namespace, name = before, after
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--claim %q is neither NAME nor NAMESPACE/NAME", s)
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}, nil
}

func tell(w io.Writer, done quarantine.Adopted) error {
	made := map[bool]string{true: "made", false: "there already"}
	v, pv := done.Volume, done.PersistentVolume
	use := fmt.Sprintf("a claim with spec.volumeName %s and storageClassName %q", pv.Name, pv.Spec.StorageClassName)
	if pv.Spec.ClaimRef != nil {
		use = fmt.Sprintf("claim %s/%s", pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	}
	_, err := fmt.Fprintf(w, `Volume %s: %s, %s of PoolClass %s
PersistentVolume %s: %s, %s, for %s
Whether the data was found: kubectl get bvol %s
`, v.Name, made[done.NewVolume], v.Spec.Capacity.String(), v.Spec.PoolClass,
		pv.Name, made[done.NewPersistentVolume], pv.Spec.PersistentVolumeReclaimPolicy, use, v.Name)
	return err
}
