package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Await waits until cond holds for the object that obj names, and leaves that
// version in obj. It does not call cond while the object does not exist.
func Await[T client.Object](ctx context.Context, c *Cluster, obj T, what string, cond func(T) bool) error {
	return c.watch(ctx, obj, what, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return false, nil
		}
		current, ok := event.Object.(T)
		if !ok || !cond(current) {
			return false, nil
		}
		return true, assign(obj, current)
	})
}

// AwaitGone waits until the object that obj names does not exist.
func AwaitGone(ctx context.Context, c *Cluster, obj client.Object) error {
	err := c.watch(ctx, obj, "gone", func(event watch.Event) (bool, error) {
		return event.Type == watch.Deleted, nil
	})
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}

var errAbsent = fmt.Errorf("object does not exist")

// watch calls done with the object as it is and then with every change of it.
// If what is "gone", it returns errAbsent when there is nothing to watch.
func (c *Cluster) watch(ctx context.Context, obj client.Object, what string, done func(watch.Event) (bool, error)) error {
	name := describe(c, obj)
	list, err := c.listOf(obj)
	if err != nil {
		return err
	}
	opts := []client.ListOption{
		client.InNamespace(obj.GetNamespace()),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", obj.GetName())},
	}
	for {
		if err := c.List(ctx, list, opts...); err != nil {
			return fmt.Errorf("waiting for %s to be %s: %w", name, what, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		if len(items) == 0 && what == "gone" {
			return errAbsent
		}
		for _, item := range items {
			if ok, err := done(watch.Event{Type: watch.Added, Object: item}); ok || err != nil {
				return err
			}
		}
		ok, err := c.follow(ctx, list, opts, done)
		if ok || err != nil {
			return wrapWait(err, name, what)
		}
	}
}

// follow watches from where list ends. It returns false without an error when
// the server closed the watch.
func (c *Cluster) follow(ctx context.Context, list client.ObjectList, opts []client.ListOption, done func(watch.Event) (bool, error)) (bool, error) {
	raw := &client.ListOptions{}
	raw.ApplyOptions(opts)
	raw.Raw = raw.AsListOptions()
	raw.Raw.ResourceVersion = list.GetResourceVersion()
	w, err := c.Watch(ctx, list, raw)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return false, ctx.Err()
			}
			if ok, err := done(event); ok || err != nil {
				return ok, err
			}
		}
	}
}

func wrapWait(err error, name, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("waiting for %s to be %s: %w", name, what, err)
}

func (c *Cluster) listOf(obj client.Object) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	list, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}

func describe(c *Cluster, obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := apiutil.GVKForObject(obj, c.Scheme()); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + obj.GetName()
}
