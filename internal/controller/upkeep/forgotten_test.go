package upkeep

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
)

const (
	forgottenVolume   = "pvc-00000000-0000-0000-0000-000000000001"
	forgottenSnapshot = "snap-00000000-0000-0000-0000-000000000001"
)

// words adds nodes to the annotation of forgotten nodes.
func words(nodes ...string) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) { v1alpha1.SetForgottenNodes(v, nodes) }
}

// upkeepOf runs the reconcilers of Volumes and Snapshots over objects. The watch and the API
// server have the Nodes n and m; only the API server has those in live.
func upkeepOf(t *testing.T, fail error, live []string, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"n", "m"}, live...) {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Volume{}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isNode := o.(*corev1.Node); isNode && fail != nil {
				return fail
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	for range 3 {
		_, err := (&Volumes{Client: c, Live: c, Nodes: everyone}).Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: forgottenVolume}})
		_, other := (&Snapshots{Client: c, Live: c, Nodes: everyone}).Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: forgottenSnapshot}})
		if fail == nil && errors.Join(err, other) != nil {
			t.Fatal(errors.Join(err, other))
		}
	}
	return c
}

// doomed is a Volume under deletion on the node lost, which has no Node.
func doomed(options ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := volume(options...)
	v.Name = forgottenVolume
	v.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	return v
}

func onLost(v *v1alpha1.Volume) {
	v.Labels = map[string]string{v1alpha1.ReplicaLabel("lost"): ""}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "lost", Pool: "vg"}}
}

func TestADeletedVolumeDoesNotWaitForForgottenNodes(t *testing.T) {
	carved := entry("lost", v1alpha1.ReplicaReady, "Carved")
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		live   []string
		fail   error
		gone   bool
	}{
		"no administrator forgot the node":                       {doomed(onLost, carved), nil, nil, false},
		"an administrator forgot the node":                       {doomed(onLost, carved, words("lost")), nil, nil, true},
		"an administrator forgot a node that had not answered":   {doomed(onLost, words("lost")), nil, nil, true},
		"an administrator forgot a node that only a label names": {doomed(entry("n", v1alpha1.ReplicaGone, "Removed"), label("lost"), words("lost")), nil, nil, true},
		"an administrator forgot another node":                   {doomed(onLost, carved, words("other")), nil, nil, false},
		"another node still has data":                            {doomed(onLost, carved, entry("m", v1alpha1.ReplicaReady, "Carved"), words("lost")), nil, nil, false},
		"another, silent node still has data":                    {doomed(onLost, carved, entry("far", v1alpha1.ReplicaReady, "Carved"), words("lost")), nil, nil, false},
		"an administrator forgot both nodes":                     {doomed(onLost, carved, entry("other", v1alpha1.ReplicaReady, "Carved"), words("lost", "other")), nil, nil, true},
		"an administrator forgot a node that is there":           {doomed(entry("n", v1alpha1.ReplicaReady, "Carved"), words("n")), nil, nil, false},
		"an administrator forgot a node that is silent":          {doomed(onLost, entry("far", v1alpha1.ReplicaReady, "Carved"), words("far", "lost")), nil, nil, false},
		"only the API server knows the forgotten Node":           {doomed(onLost, carved, words("lost")), []string{"lost"}, nil, false},
		"the API server does not answer":                         {doomed(onLost, carved, words("lost")), nil, errors.New("no answer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := upkeepOf(t, test.fail, test.live, test.volume)
			err := c.Get(t.Context(), client.ObjectKey{Name: forgottenVolume}, &v1alpha1.Volume{})
			if apierrors.IsNotFound(err) != test.gone {
				t.Errorf("the volume is gone: %v, want %v", apierrors.IsNotFound(err), test.gone)
			}
		})
	}
}

func TestADeletedSnapshotDoesNotWaitForAForgottenNode(t *testing.T) {
	s := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: forgottenSnapshot, Finalizers: []string{v1alpha1.SnapshotFinalizer}}}
	s.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	s.Labels = map[string]string{v1alpha1.ReplicaLabel("lost"): ""}
	s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "lost", Pool: "vg"}}
	for word, gone := range map[string]bool{"": false, "lost": true} {
		said := s.DeepCopy()
		if word != "" {
			v1alpha1.SetForgottenNodes(said, []string{word})
		}
		c := upkeepOf(t, nil, nil, said)
		if err := c.Get(t.Context(), client.ObjectKey{Name: forgottenSnapshot}, &v1alpha1.Snapshot{}); apierrors.IsNotFound(err) != gone {
			t.Errorf("word %q: %v", word, err)
		}
	}
}

func TestAVolumeThatLivesKeepsTheWordUntilItsNodeIsThere(t *testing.T) {
	v := volume(onLost, words("lost", "n"))
	v.Name = forgottenVolume
	c := upkeepOf(t, nil, nil, v)
	got := &v1alpha1.Volume{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: forgottenVolume}, got); err != nil {
		t.Fatal(err)
	}
	if said := v1alpha1.ForgottenNodes(got); len(said) != 1 || said[0] != "lost" {
		t.Errorf("the words are %v, want the one about lost", said)
	}
	if _, labelled := got.Labels[v1alpha1.ReplicaLabel("lost")]; !labelled || len(got.Finalizers) != 1 {
		t.Errorf("it was changed: labels %v, finalizers %v", got.Labels, got.Finalizers)
	}
}

func TestADeletionThatWaitsForANodeThatIsBackEndsTheWordAboutIt(t *testing.T) {
	c := upkeepOf(t, nil, nil, doomed(entry("n", v1alpha1.ReplicaReady, "Carved"), words("n")))
	got := &v1alpha1.Volume{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: forgottenVolume}, got))
	if said := v1alpha1.ForgottenNodes(got); len(said) != 0 {
		t.Errorf("the words are %v: the node's next absence would be forgotten too", said)
	}
}

func TestANodeIsForgottenIfTheAPIServerItselfHasNone(t *testing.T) {
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}
	for name, test := range map[string]struct {
		before, after bool // whether the cache shows the Node, and whether the API server has it
		deaf          error
		stays         bool
	}{
		"the API server has no Node":                              {},
		"the Node came, and the cache does not show the Node yet": {after: true, stays: true},
		"the Node went, and the cache still shows the Node":       {before: true},
		"the API server does not answer":                          {deaf: errBroken, stays: true},
	} {
		for kind, k := range kinds {
			t.Run(kind+": "+name, func(t *testing.T) {
				o := k.make()
				o.GetLabels()[v1alpha1.ReplicaLabel("lost")] = ""
				k.report(o, false)
				v1alpha1.SetForgottenNodes(o, []string{"lost"})
				s := lagging.New(t, o)
				must(t, s.Others().Delete(t.Context(), k.make()))
				if test.before {
					must(t, s.Others().Create(t.Context(), lost.DeepCopy()))
				}
				s.Hold(lost)
				switch {
				case test.after:
					must(t, s.Others().Create(t.Context(), lost.DeepCopy()))
				case test.before:
					must(t, s.Others().Delete(t.Context(), lost.DeepCopy()))
				}
				live := s.Live()
				if test.deaf != nil {
					live = deaf{live, lost}
				}
				err := look(t, k.reconciler(s.Client(), live), "o")
				if there(t, s, k.make()) != test.stays || !errors.Is(err, test.deaf) {
					t.Errorf("it stays: %v, want %v, %v", !test.stays, test.stays, err)
				}
			})
		}
	}
}

func TestAnObjectThatLivesNeedsNoAnswerAboutForgottenNodes(t *testing.T) {
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			o := k.make()
			o.SetFinalizers(nil)
			v1alpha1.SetForgottenNodes(o, []string{"lost"})
			s := lagging.New(t, o)
			must(t, look(t, k.reconciler(s.Client(), deaf{s.Live(), &corev1.Node{}}), "o"))
			if got := k.make(); !there(t, s, got) || len(got.GetFinalizers()) != 1 {
				t.Errorf("finalizers %v", got.GetFinalizers())
			}
		})
	}
}

func TestADeletionThatWaitsForAGoneNodeNamesTheCommandThatEndsIt(t *testing.T) {
	const word = "kubectl berth forget lost --node-is-gone"
	if p := problemOf(doomed(onLost), everyone); !strings.Contains(p.message, word) {
		t.Errorf("says %q", p.message)
	}
	nameless := doomed(entry("n", v1alpha1.ReplicaGone, "Removed"), label("lost"))
	if p := problemOf(nameless, everyone); !strings.Contains(p.message, v1alpha1.ReplicaLabel("lost")) || !strings.Contains(p.message, "forget NODE") {
		t.Errorf("of a node of which only the label is known it says %q", p.message)
	}
	if p := problemOf(doomed(entry("far", v1alpha1.ReplicaReady, "Carved")), everyone); strings.Contains(p.message, "--node-is-gone") {
		t.Errorf("of a Node that there is it says %q", p.message)
	}
}
