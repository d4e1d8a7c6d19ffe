package released

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/wipe"
)

// Objects are LUNs at the API server.
type Objects interface {
	// Read reads a LUN, uncached.
	Read(ctx context.Context, name string) (*v1alpha1.LUN, error)
	// Replace writes its status if it still is the one that was read; else the error is the API's conflict.
	Replace(ctx context.Context, l *v1alpha1.LUN) error
}

// Device is a disk that is open past the page cache, for this process alone. A change is durable when a method
// returns.
type Device interface {
	wipe.Device
	Close() error
}

// Machine is the kernel as it has block devices.
type Machine interface {
	// Hold opens a device to write it as its only user, and proves that it is the one.
	Hold(c provision.Content) (Device, error)
	// Size of a device in bytes.
	Size(c provision.Content) (int64, error)
}

// Live are the Objects of an API server.
type Live struct {
	Reader client.Reader
	Status client.StatusClient
}

var _ Objects = Live{}

// Read implements Objects.
func (o Live) Read(ctx context.Context, name string) (*v1alpha1.LUN, error) {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	l := &v1alpha1.LUN{}
	return l, o.Reader.Get(ctx, client.ObjectKey{Name: name}, l)
}

// Replace implements Objects.
func (o Live) Replace(ctx context.Context, l *v1alpha1.LUN) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	return o.Status.Status().Update(ctx, l)
}

// Kernel is the Machine of this process.
type Kernel struct{}

var _ Machine = Kernel{}

// Hold implements Machine.
func (Kernel) Hold(c provision.Content) (Device, error) {
	f, err := attached.Hold(c)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Size implements Machine.
func (Kernel) Size(c provision.Content) (int64, error) { return attached.Kernel{}.Size(c) }

// The pauses of a wiper.
const (
	// attaching is how often a disk is looked at whose attach is under way.
	attaching = time.Second
	// again is the pause after an error.
	again = 10 * time.Second
)
