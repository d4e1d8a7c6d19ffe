package oversight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
)

var errAway = errors.New("connection refused")

func expired(v *ownership.Volume) { v.ExpireAt = time.Unix(1, 0).UTC() }

func TestAQuestionFailsOfWhichAReadFails(t *testing.T) {
	releasedPod := func(t *testing.T) []client.Object {
		return cluster(t, shared(phase(ownership.Released)), pod("db", "n2", pending))
	}
	owned := func(t *testing.T) []client.Object { return cluster(t, shared(), pod("db", "n1")) }
	bare := func(t *testing.T) []client.Object { return cluster(t, shared()) }
	expires := func(t *testing.T) []client.Object { return cluster(t, shared(phase(ownership.Released), expired)) }
	fenced := func(t *testing.T) []client.Object {
		return cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1"))
	}
	for name, tc := range map[string]struct {
		objects func(t *testing.T) []client.Object
		kind    runtime.Object
		live    bool
		want    string
	}{
		"the volume":                       {owned, &v1alpha1.Volume{}, false, "connection refused"},
		"its PersistentVolumes":            {owned, &corev1.PersistentVolumeList{}, false, "listing PersistentVolumes"},
		"its claim":                        {owned, &corev1.PersistentVolumeClaim{}, false, "reading claim shop/data"},
		"its pods":                         {owned, &corev1.PodList{}, false, "listing pods"},
		"the node of its primary":          {bare, &corev1.Node{}, false, "reading node n1"},
		"the node of a pod":                {releasedPod, &corev1.Node{}, false, "reading node n2"},
		"the storage nodes":                {owned, &v1alpha1.StorageNodeList{}, false, "listing storage nodes"},
		"the nodes with labels":            {owned, &corev1.NodeList{}, false, "listing nodes"},
		"the claim, before attachments go": {expires, &corev1.PersistentVolumeClaim{}, true, "reading claim shop/data"},
		"the pods, before attachments go":  {expires, &corev1.PodList{}, true, "listing pods"},
		"the claim, before pods are ended": {fenced, &corev1.PersistentVolumeClaim{}, true, "reading claim shop/data"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.objects(t), func(w *world) {
				r := w.controller(func(r *Reconciler) {
					if !tc.live {
						r.Client = lagging.Unread{Client: r.Client, Kind: &tc.kind, Err: errAway}
						return
					}
					r.Live.(*reads).before = func(o runtime.Object) error {
						if fmt.Sprintf("%T", o) == fmt.Sprintf("%T", tc.kind) {
							return errAway
						}
						return nil
					}
				})
				w.answers("n1")
				w.passes(time.Minute)
				before, pods := w.attachments(), w.pods()
				_, err := r.Reconcile(w.t.Context(), named(id))
				if !errors.Is(err, errAway) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the error is %v", err)
				}
				if w.attachments() != before || !slices.Equal(w.pods(), pods) {
					t.Errorf("it did something: %s, %v", w.attachments(), w.pods())
				}
			})
		})
	}
}

func TestAPodOfWhichNothingIsKnownNowIsNotEnded(t *testing.T) {
	objects := cluster(t, shared(phase(ownership.Released)), pod("db", "n1"))
	for _, o := range objects {
		if n, is := o.(*corev1.Node); is {
			booted(boot)(n)
		}
	}
	gone := func(w *world) {
		if err := w.server.Others().Delete(w.t.Context(), pod("db", "n1")); err != nil {
			w.t.Fatal(err)
		}
	}
	again := func(edit func(*corev1.Pod)) func(w *world) {
		return func(w *world) {
			gone(w)
			if err := w.server.Others().Create(w.t.Context(), pod("db", "n1", edit)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(w *world)
		fails  bool
		left   []string
	}{
		"the API server does not answer": {func(*world) {}, true, []string{"db"}},
		"it has ended":                   {gone, false, nil},
		"another one has its name":       {again(func(p *corev1.Pod) { p.UID = "another" }), false, []string{"db"}},
		"another client has begun to delete it": {func(w *world) {
			edits(w, pod("db", "n1"), func(p *corev1.Pod) { p.Finalizers = []string{"test/stays"} })
			gone(w)
		}, false, []string{"db"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, objects, func(w *world) {
				r := w.controller()
				w.oversees(r)
				w.passes(strandedFor)
				w.server.Hold(&corev1.Pod{})
				tc.change(w)
				deleted := 0
				w.server.Before = func(wr lagging.Write) error {
					if wr.Verb == "delete" {
						deleted++
					}
					return nil
				}
				r.Live.(*reads).before = func(o runtime.Object) error {
					if _, is := o.(*corev1.Pod); is && tc.fails {
						return errAway
					}
					return nil
				}
				if _, err := r.Reconcile(w.t.Context(), named(id)); (err != nil) != tc.fails || tc.fails && !strings.Contains(err.Error(), "reading pod shop/db") {
					t.Errorf("the error is %v", err)
				}
				if got := w.pods(); !slices.Equal(got, tc.left) || deleted > 0 {
					t.Errorf("%v are left, and %d were deleted", got, deleted)
				}
			})
		})
	}
}

// A write that fails is told, and one that another writer has made pointless is not.
func TestAWriteThatFailsIsAnErrorUnlessItHasBecomePointless(t *testing.T) {
	volumes, pods := v1alpha1.GroupVersion.WithResource("volumes").GroupResource(), corev1.Resource("pods")
	for name, tc := range map[string]struct {
		objects []client.Object
		edit    func(*corev1.Node)
		verb    string
		answer  error
		want    string
	}{
		"the record":                           {cluster(t, shared()), tainted, "update status", errAway, "writing the record (WriterFenced)"},
		"the record of a volume that is gone":  {cluster(t, shared()), tainted, "update status", apierrors.NewNotFound(volumes, id), ""},
		"the record that another wrote":        {cluster(t, shared()), tainted, "update status", apierrors.NewConflict(volumes, id, nil), ""},
		"a pod":                                {cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1")), nil, "delete", errAway, "ending pod shop/db on node n1"},
		"a pod that is gone":                   {cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1")), nil, "delete", apierrors.NewNotFound(pods, "db"), ""},
		"a pod whose name another has":         {cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1")), nil, "delete", apierrors.NewConflict(pods, "db", nil), ""},
		"a label":                              {cluster(t, shared()), nil, "patch", errAway, "labelling node n1"},
		"a label of a node that is gone":       {cluster(t, shared()), nil, "patch", apierrors.NewNotFound(corev1.Resource("nodes"), "n1"), ""},
		"a condition":                          {cluster(t, unused(), pod("p", "n2")), nil, "update status", errAway, "writing the conditions"},
		"a condition that another wrote":       {cluster(t, unused(), pod("p", "n2")), nil, "update status", apierrors.NewConflict(volumes, id, nil), ""},
		"an event of a pod":                    {cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1")), nil, "create", errAway, "connection refused"},
		"a condition of a volume that is gone": {cluster(t, unused(), pod("p", "n2")), nil, "update status", apierrors.NewNotFound(volumes, id), ""},
		"an event":                             {cluster(t, shared()), tainted, "create", errAway, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.objects, func(w *world) {
				r := w.controller(func(r *Reconciler) { r.Places = given{"n2": {Fits: true}} })
				w.answers("n1")
				w.passes(time.Minute)
				if tc.edit != nil {
					edits(w, node("n1"), tc.edit)
				}
				w.server.Before = func(wr lagging.Write) error {
					if wr.Verb == tc.verb {
						return tc.answer
					}
					return nil
				}
				_, err := r.Reconcile(w.t.Context(), named(id))
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

func TestAVolumeThatIsBoundToNoClaimIsFencedAndItsAttachmentsExpire(t *testing.T) {
	bare := func(v *ownership.Volume) []client.Object {
		return slices.DeleteFunc(cluster(t, v, pod("other", "n9")), func(o client.Object) bool {
			switch o.(type) {
			case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
				return true
			}
			return false
		})
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"it has no PersistentVolume":      {bare(shared()), "Fenced n1 Ready, n2 Ready"},
		"a PersistentVolume has no claim": {append(cluster(t, shared(), pod("other", "n1")), unbound()), "Fenced n1 Ready, n2 Ready"},
		"its attachments have expired":    {bare(shared(phase(ownership.Released), expired)), "Released n1 Removing, n2 Removing"},
		"its claim is gone": {slices.DeleteFunc(cluster(t, shared(phase(ownership.Released), expired)), func(o client.Object) bool {
			_, is := o.(*corev1.PersistentVolumeClaim)
			return is
		}), "Released n1 Removing, n2 Removing"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.objects, func(w *world) {
				r := w.controller()
				w.passes(time.Minute)
				edits(w, node("n1"), tainted)
				w.oversees(r)
				if got := string(w.phase()) + " " + w.attachments(); got != tc.want {
					t.Errorf("it is %s", got)
				}
			})
		})
	}
}

// unbound is a second PersistentVolume of the volume, the first by name.
func unbound() *corev1.PersistentVolume {
	pv := persistentVolume()
	pv.Name, pv.Spec.ClaimRef = "a", nil
	return pv
}

func TestThePodsOfAVolumeThatSeveralNodesWriteAreNotEnded(t *testing.T) {
	objects := cluster(t, shared(phase(ownership.Fenced)), pod("db", "n1"))
	objects[0].(*v1alpha1.Volume).Spec.Sharing = v1alpha1.Shared
	inWorld(t, objects, func(w *world) {
		w.oversees(w.controller())
		if got := w.pods(); len(got) != 1 {
			t.Errorf("pods are left: %v", got)
		}
	})
}

func TestANodeThatTheCacheDoesNotShowIsReadAtTheAPIServer(t *testing.T) {
	objects := slices.DeleteFunc(cluster(t, shared()), func(o client.Object) bool {
		n, is := o.(*corev1.Node)
		return is && n.Name == "n1"
	})
	inWorld(t, objects, func(w *world) {
		r := w.controller()
		w.server.Hold(&corev1.Node{})
		if err := w.server.Others().Create(w.t.Context(), node("n1", tainted)); err != nil {
			w.t.Fatal(err)
		}
		w.oversees(r)
		if w.phase() != v1alpha1.PrimaryFenced {
			t.Errorf("the primary is %s", w.phase())
		}
	})
}

func TestAQuestionThatIsCalledOffEndsNoContact(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.passes(time.Minute)
		ctx, end := context.WithCancel(w.t.Context())
		end()
		if err := heed(ctx, r.Contact, errAway); !errors.Is(err, errAway) || r.Contact.look(suspect{}, nil, nil).watching == 0 {
			t.Errorf("the contact ended: %v", err)
		}
	})
}

func TestARuleThatOnlyANodeCanFollowIsAnError(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		if _, _, err := r.carryOut(w.t.Context(), w.asked(r), ownership.Action{Verb: ownership.GiveUp}); err == nil {
			t.Error("it does not fail")
		}
	})
}

func (w *world) asked(r *Reconciler) *question {
	w.t.Helper()
	q, err := r.gather(w.t.Context(), question{name: id}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

func TestWhichVolumesAPodMayConcern(t *testing.T) {
	ephemeral := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	own := claim()
	own.Name, own.UID = "p-d", "own"
	unboundClaim := claim()
	unboundClaim.Name, unboundClaim.UID, unboundClaim.Spec.VolumeName = "unbound", "unbound", ""
	lost := claim()
	lost.Name, lost.UID, lost.Spec.VolumeName = "lost", "lost", "lost"
	foreign := claim()
	foreign.Name, foreign.UID, foreign.Spec.VolumeName = "foreign", "foreign", "foreign"
	hostPath := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	uses := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name }
	}
	secret := func(p *corev1.Pod) { p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{} }
	inWorld(t, cluster(t, shared(), own, unboundClaim, lost, foreign, hostPath), func(w *world) {
		r := w.controller()
		for name, tc := range map[string]struct {
			object client.Object
			want   []ctrl.Request
		}{
			"its claim":                    {pod("p", "n1"), []ctrl.Request{named(id)}},
			"its own claim":                {pod("p", "n1", ephemeral), []ctrl.Request{named(id)}},
			"a volume that is no claim":    {pod("p", "n1", secret), nil},
			"a claim that is not there":    {pod("p", "n1", uses("none")), nil},
			"a claim that is not bound":    {pod("p", "n1", uses("unbound")), nil},
			"a claim whose volume is gone": {pod("p", "n1", uses("lost")), nil},
			"a claim of no CSI driver":     {pod("p", "n1", uses("foreign")), nil},
			"an object that is no pod":     {node("n1"), nil},
		} {
			if diff := cmp.Diff(tc.want, r.volumesOfPod(w.t.Context(), tc.object)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		for node, want := range map[string]int{"n1": 1, "n2": 1, "n3": 0} {
			if got := r.volumesOn(w.t.Context(), map[string]bool{node: true}); len(got) != want {
				t.Errorf("%s concerns %v", node, got)
			}
		}
	})
}

func TestAVolumeThatCannotBeReadAgainGetsNoFirstRecord(t *testing.T) {
	objects := cluster(t, shared())
	objects[0].(*v1alpha1.Volume).Status.Ownership = nil
	inWorld(t, objects, func(w *world) {
		r, read := w.controller(func(r *Reconciler) { r.FreshID = func() string { return "fresh" } }), 0
		r.Live.(*reads).before = func(o runtime.Object) error {
			if _, is := o.(*v1alpha1.Volume); is {
				if read++; read == 2 {
					return errAway
				}
			}
			return nil
		}
		if _, err := r.Reconcile(w.t.Context(), named(id)); !errors.Is(err, errAway) || w.volume().Status.Ownership != nil {
			t.Errorf("the record is %+v, %v", w.volume().Status.Ownership, err)
		}
	})
}
