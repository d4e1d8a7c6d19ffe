package lagging

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// failures counts the errors of a test, in place of failing it.
type failures struct {
	testing.TB
	told int
}

func (f *failures) Errorf(string, ...any) { f.told++ }

func volume() *v1alpha1.Volume {
	return &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "first"}}
}

// found returns the volume as a reader has it; nil if there is none.
func found(t *testing.T, from client.Reader) *v1alpha1.Volume {
	t.Helper()
	v := &v1alpha1.Volume{}
	err := from.Get(t.Context(), client.ObjectKey{Name: "v"}, v)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestADeletionNamesTheObjectThatItWasDecidedAbout(t *testing.T) {
	uid, stranger := types.UID("first"), types.UID("second")
	for name, test := range map[string]struct {
		by    func(v *v1alpha1.Volume) []client.DeleteOption
		byUID bool
		told  int
		stays bool
	}{
		"the deletion names no precondition": {by: func(*v1alpha1.Volume) []client.DeleteOption { return nil }, told: 2},
		"the deletion names the UID": {by: func(*v1alpha1.Volume) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{UID: &uid}}
		}, told: 1},
		"the deletion names the UID of a kind that needs no more": {by: func(*v1alpha1.Volume) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{UID: &uid}}
		}, byUID: true},
		"the deletion names the resourceVersion": {by: func(v *v1alpha1.Volume) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{ResourceVersion: &v.ResourceVersion}}
		}, told: 1},
		"the deletion names the UID and the resourceVersion": {by: func(v *v1alpha1.Volume) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &v.ResourceVersion}}
		}},
		"the deletion names the UID of another object": {by: func(v *v1alpha1.Volume) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{UID: &stranger, ResourceVersion: &v.ResourceVersion}}
		}, stays: true},
		"the deletion names an old resourceVersion": {by: func(*v1alpha1.Volume) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: new("0")}}
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failures{TB: t}
			s := New(f, volume())
			if test.byUID {
				s.DeletedByUID(&v1alpha1.Volume{})
			}
			v := found(t, s.Live())
			err := s.Client().Delete(t.Context(), v, test.by(v)...)
			if f.told != test.told || apierrors.IsConflict(err) != test.stays || (found(t, s.Live()) != nil) != test.stays {
				t.Errorf("told %d times, want %d; %v", f.told, test.told, err)
			}
		})
	}
}

func TestTheCacheStaysBehindUntilItAdvances(t *testing.T) {
	s := New(t, volume())
	var heard []string
	if _, err := s.Informer(&v1alpha1.Volume{}).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { heard = append(heard, "added") },
		UpdateFunc: func(any, any) { heard = append(heard, "updated") },
		DeleteFunc: func(any) { heard = append(heard, "deleted") },
	}); err != nil {
		t.Fatal(err)
	}
	s.Hold(&v1alpha1.Volume{})
	v := found(t, s.Client())
	v.Spec.PoolClass = "other"
	if err := s.Client().Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if cached, live := found(t, s.Client()), found(t, s.Live()); cached.Spec.PoolClass != "" || live.Spec.PoolClass != "other" {
		t.Errorf("the cache shows %q and the server has %q", cached.Spec.PoolClass, live.Spec.PoolClass)
	}
	s.Advance()
	if cached := found(t, s.Client()); cached.Spec.PoolClass != "other" {
		t.Errorf("the cache shows %q", cached.Spec.PoolClass)
	}
	if err := s.Others().Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if found(t, s.Client()) != nil || len(heard) != 3 || heard[0] != "added" || heard[1] != "updated" || heard[2] != "deleted" {
		t.Errorf("heard %v", heard)
	}
}

func TestACacheThatIsHeldSeesNoOtherKindThanBefore(t *testing.T) {
	s := New(t, volume())
	s.Hold()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if err := s.Others().Create(t.Context(), node); err != nil || node.UID == "" {
		t.Fatal(err, node.UID)
	}
	if err := s.Client().Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cache answers %v", err)
	}
	s.Advance()
	if err := s.Client().Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil {
		t.Errorf("the cache answers %v", err)
	}
}

func TestAWriteIsStoppedBeforeItIsDoneOrFailsAfterwards(t *testing.T) {
	killed := errors.New("killed")
	s := New(t, volume())
	v := found(t, s.Live())
	v.Spec.PoolClass = "other"
	s.Before = func(w Write) error {
		if w.Verb != "update" || w.Object != client.Object(v) {
			t.Errorf("told of %+v", w)
		}
		return killed
	}
	if err := s.Client().Update(t.Context(), v); !errors.Is(err, killed) || found(t, s.Live()).Spec.PoolClass != "" {
		t.Errorf("got %v", err)
	}
	s.Before, s.After = nil, func(Write) error { return killed }
	if err := s.Client().Update(t.Context(), v); !errors.Is(err, killed) || found(t, s.Live()).Spec.PoolClass != "other" {
		t.Errorf("got %v", err)
	}
	if err := s.Others().Update(t.Context(), found(t, s.Live())); err != nil {
		t.Errorf("others are held up: %v", err)
	}
}
