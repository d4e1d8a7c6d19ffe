package volumes_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

// CreateVolume must not take an object for missing because the API server did not answer: it
// would make the volume twice, move it away from its data, or place it where its class forbids.
func TestAnUnreadableObjectIsAnErrorAndChangesNothing(t *testing.T) {
	there := []client.Object{existing(wanted("n"), carved("n"))}
	create := func(r volumes.Request) func(ctx context.Context, s *stage) error {
		return func(ctx context.Context, s *stage) error { _, err := s.Create(ctx, r); return err }
	}
	for name, test := range map[string]struct {
		unread  runtime.Object
		objects []client.Object
		call    func(ctx context.Context, s *stage) error
	}{
		"a volume that is to be made": {&v1alpha1.Volume{}, there, create(request("n"))},
		"a volume that is shown":      {&v1alpha1.Volume{}, there, func(ctx context.Context, s *stage) error { _, err := s.Get(ctx, id); return err }},
		"a volume that is to grow": {&v1alpha1.Volume{}, there, func(ctx context.Context, s *stage) error {
			_, err := s.Expand(ctx, id, volumes.Size{Required: 2 * gi})
			return err
		}},
		"a volume that is to be abandoned":                 {&v1alpha1.Volume{}, there, func(ctx context.Context, s *stage) error { return s.Abandon(ctx, id) }},
		"a volume that is to be deleted":                   {&v1alpha1.Volume{}, there, func(ctx context.Context, s *stage) error { return s.Delete(ctx, id) }},
		"all volumes":                                      {&v1alpha1.VolumeList{}, there, func(ctx context.Context, s *stage) error { _, _, err := s.List(ctx, "", 0); return err }},
		"the PersistentVolume of a volume that is to move": {&corev1.PersistentVolume{}, there, create(request("m"))},
		"the snapshot of a copy":                           {&v1alpha1.Snapshot{}, []client.Object{photo(v1alpha1.SnapshotReady)}, create(copyOf(v1alpha1.VolumeSource{Snapshot: photoID}))},
		"the agent that makes a copy":                      {&v1alpha1.StorageNode{}, []client.Object{source()}, create(copyOf(v1alpha1.VolumeSource{Volume: sourceID}))},
		"the class of a filesystem":                        {&v1alpha1.PoolClass{}, nil, create(request("n"))},
		"the class of room":                                {&v1alpha1.PoolClass{}, nil, func(ctx context.Context, s *stage) error { _, err := s.Capacity(ctx, "fast", nil); return err }},
		"all classes":                                      {&v1alpha1.PoolClassList{}, nil, func(ctx context.Context, s *stage) error { _, err := s.Capacity(ctx, "", nil); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.unread = test.unread
				expect(t, test.call(within(t), s), errBroken)
				s.wroteOnly()
			}, test.objects...)
		})
	}
}

func TestTheAPIServerIsNotAskedForAnInvalidID(t *testing.T) {
	create := func(from v1alpha1.VolumeSource) func(ctx context.Context, s *stage) error {
		return func(ctx context.Context, s *stage) error { _, err := s.Create(ctx, copyOf(from)); return err }
	}
	for name, test := range map[string]struct {
		unread runtime.Object
		class  error
		call   func(ctx context.Context, s *stage) error
	}{
		"a call deletes a volume":  {&v1alpha1.Volume{}, nil, func(ctx context.Context, s *stage) error { return s.Delete(ctx, "theirs") }},
		"a call shows a volume":    {&v1alpha1.Volume{}, provision.ErrNotFound, func(ctx context.Context, s *stage) error { _, err := s.Get(ctx, "theirs"); return err }},
		"a call copies a snapshot": {&v1alpha1.Snapshot{}, provision.ErrNotFound, create(v1alpha1.VolumeSource{Snapshot: "theirs"})},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.unread = test.unread
				expect(t, test.call(within(t), s), test.class)
				s.wroteOnly()
			})
		})
	}
}
