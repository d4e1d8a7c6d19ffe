package shell

import (
	"context"
	"encoding/json"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/upkeep"
)

// caller is a process' client of the API server. With caches it reads from those.
type caller struct {
	client.Client
	p      *process
	caches *caches
}

func (c *caller) call(ctx context.Context, what, about string, happens func() error) error {
	return c.p.effect(ctx, toAPI, what, about, happens)
}

// Get implements client.Reader.
func (c *caller) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if m, is := into.(*metav1.PartialObjectMetadata); is { // of a Node
		n := &corev1.Node{}
		err := c.Get(ctx, key, n)
		m.ObjectMeta = n.ObjectMeta
		return err
	}
	if c.caches != nil {
		i := c.caches.of(kindOf(into))
		i.mu.Lock()
		defer i.mu.Unlock()
		found := i.shown[key]
		if found == nil {
			return missing(i.kind, key.Name)
		}
		var o client.GetOptions
		o.ApplyOptions(options)
		if o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
			return nil
		}
		fill(found, into)
		return nil
	}
	return c.call(ctx, "Get"+kindOf(into).Name(), key.Name, func() error { return c.p.w.api.get(key, into) })
}

// List implements client.Reader.
func (c *caller) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if m, is := list.(*metav1.PartialObjectMetadataList); is { // of StorageNodes
		var all v1alpha1.StorageNodeList
		err := c.List(ctx, &all)
		for i := range all.Items {
			m.Items = append(m.Items, metav1.PartialObjectMetadata{ObjectMeta: all.Items[i].ObjectMeta})
		}
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	items := itemsOf(list)
	k := items.Type().Elem()
	if c.caches != nil {
		i := c.caches.of(k)
		i.mu.Lock()
		all := inOrder(i.shown)
		i.mu.Unlock()
		chosen(items, all, &o)
		return nil
	}
	return c.call(ctx, "List"+k.Name(), "", func() error {
		chosen(items, c.p.w.api.all(k), &o)
		return nil
	})
}

// chosen puts the objects that a list asks for into it: copies, unless the caller promises not to change them.
func chosen(items reflect.Value, all []client.Object, o *client.ListOptions) {
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	items.Grow(len(all))
	for _, found := range all {
		if o.Namespace != "" && found.GetNamespace() != o.Namespace {
			continue
		}
		if pv, is := found.(*corev1.PersistentVolume); is && o.FieldSelector != nil {
			if handle, asked := o.FieldSelector.RequiresExactMatch(upkeep.HandleIndex); asked && pv.Spec.CSI.VolumeHandle != handle {
				continue
			}
		}
		if !shared {
			found = found.DeepCopyObject().(client.Object)
		}
		items.Set(reflect.Append(items, reflect.ValueOf(found).Elem()))
	}
}

// Create implements client.Writer. Events go nowhere.
func (c *caller) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	if _, is := o.(*eventsv1.Event); is {
		return nil
	}
	return c.call(ctx, "Create"+kindOf(o).Name(), o.GetName(), func() error { return c.p.w.api.create(o) })
}

// Update implements client.Writer.
func (c *caller) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.call(ctx, "Update"+kindOf(o).Name(), o.GetName(), func() error { return c.p.w.api.update(c.p.name, o, false) })
}

// Delete implements client.Writer.
func (c *caller) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return c.call(ctx, "Delete"+kindOf(o).Name(), o.GetName(), func() error {
		return c.p.w.api.remove(c.p, o, options...)
	})
}

// Patch implements client.Writer, for labels of Nodes.
func (c *caller) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	var says struct {
		Metadata struct {
			Labels map[string]*string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &says); err != nil {
		return err
	}
	return c.call(ctx, "PatchNode", o.GetName(), func() error {
		return edit(c.p.w.api, client.ObjectKeyFromObject(o), func(n *corev1.Node) {
			for key, value := range says.Metadata.Labels {
				if value == nil {
					delete(n.Labels, key)
					continue
				}
				metav1.SetMetaDataLabel(&n.ObjectMeta, key, *value)
			}
		})
	})
}

// Status implements client.StatusClient.
func (c *caller) Status() client.SubResourceWriter { return statuses{c: c} }

type statuses struct {
	client.SubResourceWriter
	c *caller
}

// Update implements client.SubResourceWriter.
func (s statuses) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.c.call(ctx, "Update"+kindOf(o).Name()+"Status", o.GetName(), func() error { return s.c.p.w.api.update(s.c.p.name, o, true) })
}
