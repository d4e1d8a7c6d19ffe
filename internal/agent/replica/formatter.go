package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/provision"
)

// Formatter makes filesystems on replicas that were reported ready, so that
// mkfs runs while the claim is bound and the pod is on its way. Stage does not
// rely on it: it takes the same lock and asks for the filesystem again.
type Formatter struct {
	provisioner provision.Provisioner
	owner       Owner
	queue       workqueue.TypedRateLimitingInterface[provision.FormatRequest]
}

// Owner says whether a filesystem may be made before a node takes the volume, and calls step under
// the volume's lock if so. It is the Owner of package staging: else a volume that another node uses
// could be written here.
type Owner interface {
	Prepare(ctx context.Context, id string, step func(ctx context.Context) error) error
}

// NewFormatter returns a formatter that works once Start is called.
func NewFormatter(p provision.Provisioner, owner Owner) *Formatter {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[provision.FormatRequest](time.Second, 5*time.Minute)
	return &Formatter{provisioner: p, owner: owner, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// Enqueue asks for a filesystem. It never blocks.
func (f *Formatter) Enqueue(r provision.FormatRequest) { f.queue.Add(r) }

// Start works until the context ends, with a few workers: mkfs loads the disks.
func (f *Formatter) Start(ctx context.Context) error {
	const workers = 4
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for f.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	f.queue.ShutDown()
	wg.Wait()
	return nil
}

func (f *Formatter) next(ctx context.Context) bool {
	item, shutdown := f.queue.Get()
	if shutdown {
		return false
	}
	defer f.queue.Done(item)
	err := f.format(ctx, item)
	switch {
	case err == nil, errors.Is(err, provision.ErrNotFound), errors.Is(err, provision.ErrConflict):
		// Stage reports a conflict: there is no claim to report it to here.
		f.queue.Forget(item)
	case ctx.Err() == nil:
		log.FromContext(ctx).Error(err, "formatting failed, trying again", "volume", item.ID)
		f.queue.AddRateLimited(item)
	}
	return true
}

func (f *Formatter) format(ctx context.Context, item provision.FormatRequest) error {
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	return f.owner.Prepare(ctx, item.ID, func(ctx context.Context) error {
		_, err := f.provisioner.Format(ctx, item)
		return err
	})
}
