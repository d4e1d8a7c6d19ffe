package driver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// ErrForeign says that a Volume or a Snapshot belongs to another driver. It is no "not found":
// data of that name is not without an object.
var ErrForeign = errors.New("the object belongs to another driver")

// View returns a client to which the Volumes and Snapshots of other drivers do not exist, as if
// its watch did not select them. Those that it creates become the driver's. It sees only typed
// objects of these two kinds as a driver's; all others pass.
func (d Driver) View(c client.Client) client.Client { return view{Client: c, driver: d} }

// Live returns a reader of the API server that lists the driver's Volumes and Snapshots and
// fails with ErrForeign for those of other drivers, since what it reads may decide about data.
func (d Driver) Live(r client.Reader) client.Reader { return live{Reader: r, driver: d} }

// Guard returns a client that fails with ErrForeign for the Volumes and Snapshots of other
// drivers that it is asked for, and lists the driver's. It is for a command that acts on an
// object which a person names. Those that it creates become the driver's.
func (d Driver) Guard(c client.Client) client.Client {
	return guard{view: view{Client: c, driver: d}, live: live{Reader: c, driver: d}}
}

type guard struct {
	view
	live live
}

// Get implements client.Reader.
func (g guard) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return g.live.Get(ctx, key, o, options...)
}

type view struct {
	client.Client
	driver Driver
}

// Get implements client.Reader.
func (v view) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := v.Client.Get(ctx, key, o, options...); err != nil {
		return err
	}
	if of, ok := o.(Object); ok && !v.driver.Owns(of) {
		return apierrors.NewNotFound(resourceOf(o), key.Name)
	}
	return nil
}

// List implements client.Reader.
func (v view) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := v.Client.List(ctx, list, options...)
	v.driver.keepOwn(list)
	return err
}

// Create implements client.Writer. An API server whose definitions are older drops the name of
// the driver, and the object would be the local driver's: it is deleted, and the call fails.
func (v view) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	v.driver.sign(o)
	if err := v.Client.Create(ctx, o, options...); err != nil {
		return err
	}
	of, ok := o.(Object)
	if !ok || v.driver.Owns(of) {
		return nil
	}
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := v.Client.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return errors.Join(fmt.Errorf("%w: %s was made for driver %s, and the API server keeps it as driver %s's: update the CustomResourceDefinitions",
		ErrForeign, o.GetName(), v.driver.Name, of.DriverName()), client.IgnoreNotFound(err))
}

type live struct {
	client.Reader
	driver Driver
}

// Get implements client.Reader.
func (l live) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := l.Reader.Get(ctx, key, o, options...); err != nil {
		return err
	}
	if of, ok := o.(Object); ok && !l.driver.Owns(of) {
		return fmt.Errorf("%w: %s is of driver %s, not %s", ErrForeign, key.Name, of.DriverName(), l.driver.Name)
	}
	return nil
}

// List implements client.Reader.
func (l live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := l.Reader.List(ctx, list, options...)
	l.driver.keepOwn(list)
	return err
}

// keepOwn drops the objects of other drivers from a list. The list is the caller's, even if the
// objects in it are a cache's.
func (d Driver) keepOwn(list client.ObjectList) {
	switch l := list.(type) {
	case *v1alpha1.VolumeList:
		l.Items = kept(l.Items, func(v *v1alpha1.Volume) bool { return d.Owns(v) })
	case *v1alpha1.SnapshotList:
		l.Items = kept(l.Items, func(s *v1alpha1.Snapshot) bool { return d.Owns(s) })
	}
}

// kept works in place, and moves nothing while all are kept.
func kept[T any](items []T, keep func(*T) bool) []T {
	n := 0
	for i := range items {
		if !keep(&items[i]) {
			continue
		}
		if n < i {
			items[n] = items[i]
		}
		n++
	}
	return items[:n]
}

// sign makes an object the driver's. Nothing is written for the driver that the API takes for
// granted, so that its objects stay as older versions of Berth make them.
func (d Driver) sign(o client.Object) {
	name := d.Name
	if name == v1alpha1.LocalDriverName {
		name = ""
	}
	switch o := o.(type) {
	case *v1alpha1.Volume:
		o.Spec.Driver = name
	case *v1alpha1.Snapshot:
		o.Spec.Driver = name
	}
}

func resourceOf(o client.Object) schema.GroupResource {
	resource := "volumes"
	if _, snapshot := o.(*v1alpha1.Snapshot); snapshot {
		resource = "snapshots"
	}
	return schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: resource}
}
