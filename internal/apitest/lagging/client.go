package lagging

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// reads adds reads from the cache to the functions of a client.
func (s *Server) reads(funcs interceptor.Funcs) interceptor.Funcs {
	funcs.Get = func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		return s.cached(ctx, s.kindOf(o)).Get(ctx, key, o, opts...)
	}
	funcs.List = func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		return s.cached(ctx, s.kindOf(list)).List(ctx, list, opts...)
	}
	return funcs
}

// writes returns the write functions of Client, or those of Others.
func (s *Server) writes(own bool) interceptor.Funcs {
	do := func(verb string, o client.Object, write func() error) error {
		return s.write(own, Write{verb, o}, write)
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return do("create", o, func() error {
				s.identify(o)
				return c.Create(ctx, o, opts...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return do("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return do("patch", o, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return do("apply", nil, func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return do("delete", o, func() error { return s.delete(ctx, c, own, o, opts...) })
		},
		DeleteAllOf: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteAllOfOption) error {
			s.t.Errorf("all objects like %T are deleted, whatever they are", o)
			return apierrors.NewMethodNotSupported(schema.GroupResource{}, "deletecollection")
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return do("update "+sub, o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return do("patch "+sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return do("apply "+sub, nil, func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
	}
}

// write makes a write of Client, or one of Others. It calls Before and After around a
// write of Client.
func (s *Server) write(own bool, w Write, do func() error) error {
	if own && s.Before != nil {
		if err := s.Before(w); err != nil {
			return err
		}
	}
	err := do()
	s.catchUp()
	if own && err == nil && s.After != nil {
		return s.After(w)
	}
	return err
}

// delete checks that a deletion is for the very object that it was decided about. The
// fake client below knows only one of the two preconditions.
func (s *Server) delete(ctx context.Context, c client.Client, own bool, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	decided := options.Preconditions
	if own {
		if decided == nil || decided.UID == nil {
			s.t.Errorf("%T %s is deleted, whichever object has that name by now: its UID is no precondition", o, o.GetName())
		}
		if byUID := s.byUID[s.kindOf(o)]; !byUID && (decided == nil || decided.ResourceVersion == nil) {
			s.t.Errorf("%T %s is deleted, whatever it says by now: its resourceVersion is no precondition", o, o.GetName())
		}
	}
	if decided != nil && decided.UID != nil {
		there, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T cannot be copied", o)
		}
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
			return err
		}
		if there.GetUID() != *decided.UID {
			return apierrors.NewConflict(schema.GroupResource{Resource: s.kindOf(o).Kind}, o.GetName(), fmt.Errorf("its UID is %s, not %s", there.GetUID(), *decided.UID))
		}
	}
	return c.Delete(ctx, o, opts...)
}

// Informer returns an informer of a kind, as the cache shows it.
func (s *Server) Informer(kind client.Object) Informer {
	return Informer{s, s.kindOf(kind)}
}

// Informer is the informer of one kind.
type Informer struct {
	server *Server
	kind   schema.GroupVersionKind
}

// AddEventHandler reports all objects that the cache shows, and from then on each change.
func (i Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.server.follow(i.server.t.Context(), i.kind)
	i.server.mu.Lock()
	defer i.server.mu.Unlock()
	for _, o := range i.server.shown[i.kind] {
		handler.OnAdd(o, true)
	}
	i.server.listeners[i.kind] = append(i.server.listeners[i.kind], handler)
	return synced{}, nil
}

// synced is the registration of a handler that was told of everything.
type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }
