package lagging

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unread is a client that cannot read the objects of one kind, or lists of one.
type Unread struct {
	client.Client
	// Kind is an object or a list of the kind that cannot
	// be read. While it is nil, all kinds can.
	Kind *runtime.Object
	// Err is the answer to a read of that kind.
	Err error
}

func (u Unread) fails(o runtime.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(*u.Kind) }

// Get implements client.Reader.
func (u Unread) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if u.fails(o) {
		return u.Err
	}
	return u.Client.Get(ctx, key, o, opts...)
}

// List implements client.Reader.
func (u Unread) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if u.fails(list) {
		return u.Err
	}
	return u.Client.List(ctx, list, opts...)
}
