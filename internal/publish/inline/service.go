package inline

import (
	"context"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
	"berth.dev/berth/internal/publish/staging"
)

// Disks are the node's volumes and mounts; poold.Node is one.
type Disks interface {
	Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error)
	Get(ctx context.Context, id string) (provision.Volume, error)
	Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error)
	Delete(ctx context.Context, id string) error
	mount.Mounter
}

// Offers are the class, the labels and the pools for new volumes, as this process knows them
// without a request.
type Offers interface {
	// Class returns a PoolClass and the labels of the node. An error is of
	// provision's classes: ErrUnavailable while nothing is known yet.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, map[string]string, error)
	// Pools of the latest report.
	Pools() []provision.Pool
}

// Config of a Service.
type Config struct {
	Kubelet kubeletdir.Dir
	Disks   Disks
	Offers  Offers
	Marks   Marks
	// Mounts reads the mount table.
	Mounts staging.MountTable
	// Locks are held by volume id.
	Locks staging.Locks
}

// Service makes and removes inline volumes. All calls are idempotent.
type Service struct {
	kubelet kubeletdir.Dir
	disks   Disks
	offers  Offers
	marks   Marks
	mounts  staging.MountTable
	locks   staging.Locks
	calls   keyed.Locks[string]
}

// New makes the service.
func New(c Config) *Service {
	return &Service{kubelet: c.Kubelet, disks: c.Disks, offers: c.Offers, marks: c.Marks, mounts: c.Mounts, locks: c.Locks}
}

// begin admits one call for a volume; a second one is refused at once.
func (s *Service) begin(ctx context.Context, v volume) (end func(), err error) {
	done, err := s.calls.TryLock(v.id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v, err)
	}
	unlock, err := s.locks.Lock(ctx, v.id)
	if err != nil {
		done()
		return nil, fmt.Errorf("waiting for another operation on %s: %w", v, err)
	}
	return func() { unlock(); done() }, nil
}

func (v volume) mark() Mark { return Mark{v.id, v.owner} }

// errAnothers says that a volume with the id is another pod's.
var errAnothers = fmt.Errorf("%w: another pod has the id", provision.ErrConflict)

// check refuses a record that is not the volume's or cannot be used.
func (v volume) check(record provision.Volume) error {
	switch {
	case record.Inline != v.owner:
		return fmt.Errorf("%w: %s belongs to volume %s of pod %s", errAnothers, v, record.Inline.Name, record.Inline.PodUID)
	case record.Problem != "":
		return fmt.Errorf("%w: %s: %s", provision.ErrUnavailable, v, record.Problem)
	}
	return nil
}
