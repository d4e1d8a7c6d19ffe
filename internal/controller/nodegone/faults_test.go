package nodegone

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

var errAway = errors.New("connection refused")

// breaking fails one read, the first being number 1, and notes how many writes there were then.
type breaking struct {
	w                   *world
	fails, read, writes int
}

func (b *breaking) ask(do func() error) error {
	if b.read++; b.read == b.fails {
		b.writes = b.w.writes
		return errAway
	}
	return do()
}

// breakingCache is the cache of the watches. It never fails for a Node or a claim: such a failure
// counts as a missing object, and the API server is asked before anything is decided by that.
type breakingCache struct {
	client.Client
	*breaking
}

func (c breakingCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o.(type) {
	case *corev1.Node, *corev1.PersistentVolumeClaim:
		return c.Client.Get(ctx, key, o, opts...)
	}
	return c.ask(func() error { return c.Client.Get(ctx, key, o, opts...) })
}

func (c breakingCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.ask(func() error { return c.Client.List(ctx, list, opts...) })
}

type breakingLive struct {
	client.Reader
	*breaking
}

func (l breakingLive) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return l.ask(func() error { return l.Reader.Get(ctx, key, o, opts...) })
}

// releasing reconciles when the claim is due, and fails one read.
func releasing(t *testing.T, fails int) (*breaking, error) {
	t.Helper()
	w := due(t)
	b := &breaking{w: w, fails: fails}
	w.r.Client, w.r.Live = breakingCache{w.r.Client, b}, breakingLive{w.r.Live, b}
	_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}})
	return b, err
}

func TestAReadThatFailsIsToldAndNothingIsWrittenAfterIt(t *testing.T) {
	whole, err := releasing(t, 0)
	if err != nil || whole.w.ending().Claim {
		t.Fatalf("%v, %+v", err, whole.w.ending())
	}
	for n := 1; n <= whole.read; n++ {
		b, err := releasing(t, n)
		if !errors.Is(err, errAway) {
			t.Errorf("read %d of %d fails: error %v", n, whole.read, err)
		}
		if b.w.writes != b.writes {
			t.Errorf("read %d of %d fails, and there are %d writes after it", n, whole.read, b.w.writes-b.writes)
		}
	}
}

// names are the nodes that are to be looked at.
func names(requests []reconcile.Request) (nodes []string) {
	for _, r := range requests {
		nodes = append(nodes, r.Name)
	}
	return nodes
}

func TestTheNodesOfAVolumeAreLookedAtThatAreGoneOrWereSaidToBe(t *testing.T) {
	w := newWorld(t, node("n2"))
	there, returned := gonetest.On("n2", "", "", 0), gonetest.On("n2", metav1.ConditionFalse, v1alpha1.ReasonNodeReturned, hour)
	pending, lost := gonetest.On("n2", metav1.ConditionTrue, v1alpha1.ReasonReleasePending, hour), gonetest.On("n1", "", "", 0)
	for name, tc := range map[string]struct {
		object client.Object
		want   []string
	}{
		"a Volume of an existing node":                 {&there, nil},
		"a Volume whose node came back":                {&returned, nil},
		"a Volume whose existing node is still marked": {&pending, []string{"n2"}},
		"a Volume whose node is gone":                  {&lost, []string{"n1"}},
		"an object that is no Volume":                  {node("n1"), nil},
	} {
		if got := names(w.r.nodesOf(t.Context(), tc.object)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheNodesOfAClassAreLookedAtOnceThatAreGone(t *testing.T) {
	again := lonely("n1")
	again.Name, again.UID = "vol-again", "again"
	slow := lonely("n4")
	slow.Spec.PoolClass = "slow"
	w := newWorld(t, node("n2"), lonely("n1"), again, lonely("n2"), slow)
	if got := names(w.r.nodesOfClass(t.Context(), gonetest.Class(v1alpha1.NodeGoneKeep))); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("%v", got)
	}
	b := &breaking{w: w, fails: 1}
	w.r.Client = breakingCache{w.r.Client, b}
	if got := w.r.nodesOfClass(t.Context(), gonetest.Class(v1alpha1.NodeGoneKeep)); got != nil {
		t.Errorf("of volumes that cannot be listed: %v", got)
	}
}
