package lagging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// Write is a write that a client is about to make, or has made.
type Write struct {
	// Verb is create, update, patch, apply or delete; of a status, the word
	// "status" follows.
	Verb string
	// Object as it was handed to the client; nil for an apply.
	Object client.Object
}

// Server is the API server and the manager's cache of it. Its methods may be
// called concurrently; its fields are set by the test between calls.
type Server struct {
	// Before, if set, is called before each write of Client, and After once it was
	// done. The writer gets their error in place of the write's.
	Before, After func(Write) error

	t      testing.TB
	scheme *runtime.Scheme
	live   client.WithWatch
	others client.Client
	own    client.Client
	byUID  map[schema.GroupVersionKind]bool

	mu        sync.Mutex
	index     []index
	shown     map[schema.GroupVersionKind]map[types.NamespacedName]client.Object
	cuts      map[schema.GroupVersionKind]cache.TransformFunc
	held      map[schema.GroupVersionKind]bool
	allHeld   bool
	listeners map[schema.GroupVersionKind][]cache.ResourceEventHandler
	uids      int
}

type index struct {
	object client.Object
	field  string
	of     client.IndexerFunc
}

// New starts a Server that has some objects. The cache shows them at once.
func New(t testing.TB, objects ...client.Object) *Server {
	t.Helper()
	s := &Server{
		t: t, scheme: runtime.NewScheme(), byUID: map[schema.GroupVersionKind]bool{}, held: map[schema.GroupVersionKind]bool{},
		cuts:      map[schema.GroupVersionKind]cache.TransformFunc{},
		shown:     map[schema.GroupVersionKind]map[types.NamespacedName]client.Object{},
		listeners: map[schema.GroupVersionKind][]cache.ResourceEventHandler{},
	}
	if err := errors.Join(clientscheme.AddToScheme(s.scheme), v1alpha1.AddToScheme(s.scheme)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(s.scheme).WithGlobalResourceVersionCounter().
		WithIndex(&v1alpha1.Volume{}, "spec.driver", func(o client.Object) []string { return []string{o.(*v1alpha1.Volume).Spec.Driver} }). // selectable
		WithStatusSubresource(&v1alpha1.Volume{}, &v1alpha1.Snapshot{}, &v1alpha1.StorageNode{}, &v1alpha1.PoolClass{}, &v1alpha1.LUN{})
	for _, o := range objects {
		o = o.DeepCopyObject().(client.Object)
		o.SetResourceVersion("")
		s.identify(o)
		builder.WithObjects(o)
	}
	s.live = builder.Build()
	s.others = interceptor.NewClient(s.live, s.writes(false))
	s.own = interceptor.NewClient(s.live, s.reads(s.writes(true)))
	for _, o := range objects {
		s.follow(t.Context(), s.kindOf(o))
	}
	return s
}

// identify gives an object a UID, as the API server does.
func (s *Server) identify(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.GetUID() == "" {
		s.uids++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	}
}

// Client is the manager's client: it reads from the cache and writes to the server.
func (s *Server) Client() client.Client { return s.own }

// Live reads from the server.
func (s *Server) Live() client.Reader { return struct{ client.Reader }{s.live} }

// Others reads from the server and writes to it, like all other clients. Its writes
// are not checked.
func (s *Server) Others() client.Client { return s.others }

// DeletedByUID names kinds of which Client may delete an object by its UID alone: the
// object is deleted even if it has changed meanwhile.
func (s *Server) DeletedByUID(kinds ...client.Object) {
	for _, kind := range kinds {
		s.byUID[s.kindOf(kind)] = true
	}
}

// Index adds a field that Client's lists may select by.
func (s *Server) Index(o client.Object, field string, of client.IndexerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index = append(s.index, index{o, field, of})
}

// Cut has the cache keep of some kinds what the manager's cache keeps.
func (s *Server) Cut(kinds map[client.Object]cache.TransformFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, transform := range kinds {
		kind := s.kindOf(o)
		s.cuts[kind] = transform
		if s.shown[kind] != nil {
			s.shown[kind] = s.list(s.t.Context(), kind)
		}
	}
}

// Hold keeps the cache of some kinds as it is now; of all if none is named.
func (s *Server) Hold(kinds ...client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allHeld = s.allHeld || len(kinds) == 0
	for _, kind := range kinds {
		s.held[s.kindOf(kind)] = true
	}
}

// Advance has the whole cache catch up, and follow again.
func (s *Server) Advance() {
	s.mu.Lock()
	s.allHeld = false
	clear(s.held)
	s.mu.Unlock()
	s.catchUp()
}

// catchUp updates the cache of the kinds that are not held, and tells their
// informers: the newest state of each object alone, as after a relist.
func (s *Server) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range s.shown {
		if s.allHeld || s.held[kind] {
			continue
		}
		before, now := s.shown[kind], s.list(s.t.Context(), kind)
		s.shown[kind] = now
		for _, listener := range s.listeners[kind] {
			tell(listener, before, now)
		}
	}
}

func tell(listener cache.ResourceEventHandler, before, now map[types.NamespacedName]client.Object) {
	for name, o := range now {
		old, known := before[name]
		switch {
		case !known:
			listener.OnAdd(o, false)
		case old.GetResourceVersion() != o.GetResourceVersion():
			listener.OnUpdate(old, o)
		}
	}
	for name, o := range before {
		if _, there := now[name]; !there {
			listener.OnDelete(o)
		}
	}
}

// list returns the server's objects of a kind, as the cache keeps them.
func (s *Server) list(ctx context.Context, kind schema.GroupVersionKind) map[types.NamespacedName]client.Object {
	objects := map[types.NamespacedName]client.Object{}
	list := s.listOf(kind)
	if err := s.live.List(context.WithoutCancel(ctx), list); err != nil {
		panic(err)
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		kept := any(item)
		if transform := s.cuts[kind]; transform != nil {
			var err error
			if kept, err = transform(item); err != nil {
				return err
			}
		}
		o, ok := kept.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", kept)
		}
		if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
			o.SetFinalizers([]string{"lagging/kept"}) // that of the object is cut, and without one the fake client takes no such object
		}
		objects[client.ObjectKeyFromObject(o)] = o
		return nil
	})
	if err != nil {
		panic(err)
	}
	return objects
}

func (s *Server) listOf(kind schema.GroupVersionKind) client.ObjectList {
	o, err := s.scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	list, ok := o.(client.ObjectList)
	if err != nil || !ok {
		panic(fmt.Sprintf("there is no list of %s: %v", kind, err))
	}
	return list
}

// cached returns a client of the cached objects of a kind.
func (s *Server) cached(ctx context.Context, kind schema.GroupVersionKind) client.Reader {
	s.follow(ctx, kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	tracker := clienttesting.NewObjectTracker(s.scheme, serializer.NewCodecFactory(s.scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(s.scheme).WithObjectTracker(tracker)
	for _, i := range s.index {
		builder.WithIndex(i.object, i.field, i.of)
	}
	return builder.WithObjects(slices.Collect(maps.Values(s.shown[kind]))...).Build()
}

// follow makes the cache show a kind from now on.
func (s *Server) follow(ctx context.Context, kind schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[kind] == nil {
		s.shown[kind] = map[types.NamespacedName]client.Object{}
		if !s.allHeld && !s.held[kind] {
			s.shown[kind] = s.list(ctx, kind)
		}
	}
}

// kindOf returns the kind of an object, or of the items of a list.
func (s *Server) kindOf(o runtime.Object) schema.GroupVersionKind {
	kind, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		panic(err)
	}
	if _, is := o.(client.ObjectList); is {
		kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	}
	return kind
}
