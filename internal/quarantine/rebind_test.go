package quarantine

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// first is the uid of the claim that exported names.
const first types.UID = "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"

// claimed is the claim shop/db, bound to a PersistentVolume if one is named.
func claimed(uid types.UID, pv string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid}}
	c.Spec.VolumeName = pv
	return c
}

func retained(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

func keptFor(namespace, name string, uid types.UID) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
	}
}

func unclaimed(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }

func going(pv *corev1.PersistentVolume) {
	pv.DeletionTimestamp, pv.Finalizers = &since, []string{"kubernetes.io/pv-protection"}
}

func TestAPersistentVolumeWhoseClaimIsGoneIsKeptForAnother(t *testing.T) {
	elsewhere := claimed(first, "data")
	elsewhere.Namespace = "bank"
	for name, tc := range map[string]struct {
		objects []client.Object
		claim   string // of namespace shop; empty names none
		rebound bool
		refusal string
	}{
		"the administrator names no claim":                                  {objects: []client.Object{exported(lost, retained)}},
		"the claim of the PersistentVolume exists":                          {objects: []client.Object{exported(lost), claimed(first, "data")}, claim: "db"},
		"the PersistentVolume waits for the named claim already":            {objects: []client.Object{exported(lost, keptFor("shop", "db", ""))}, claim: "db"},
		"the old claim is gone, and the administrator names another claim":  {objects: []client.Object{exported(lost, retained)}, claim: "db-copy", rebound: true},
		"the old claim is gone, and the administrator names the same claim": {objects: []client.Object{exported(lost, retained)}, claim: "db", rebound: true},
		"a new claim has the name of the old claim":                         {objects: []client.Object{exported(lost, retained), claimed("another", "")}, claim: "db", rebound: true},
		"the PersistentVolume has no claim":                                 {objects: []client.Object{exported(lost, unclaimed)}, claim: "db", rebound: true},
		"the PersistentVolume belongs to another claim": {objects: []client.Object{exported(lost, retained), claimed(first, "data")}, claim: "db-copy",
			refusal: "is kept for claim shop/db, which exists"},
		"the PersistentVolume waits for another claim": {objects: []client.Object{exported(lost, retained, keptFor("shop", "db", "")), claimed("any", "")}, claim: "db-copy",
			refusal: "is kept for claim shop/db, which exists"},
		"the PersistentVolume would go with the claim": {objects: []client.Object{exported(lost)}, claim: "db-copy", refusal: "set its persistentVolumeReclaimPolicy to Retain first"},
		"the PersistentVolume is being deleted":        {objects: []client.Object{exported(lost, retained, going)}, claim: "db-copy", refusal: "is being deleted"},
		"a claim of the same name in another namespace has the PersistentVolume": {objects: []client.Object{exported(lost, retained, keptFor("bank", "db", first)), elsewhere},
			claim: "db", refusal: "is kept for claim bank/db, which exists"},
		"the claim has another PersistentVolume": {objects: []client.Object{exported(lost, retained), claimed("another", "younger")}, claim: "db",
			refusal: "claim shop/db has PersistentVolume younger"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, append(tc.objects, volume(lost, "n1"))...)
			a := Adoption{Node: "n1", Name: lost}
			if tc.claim != "" {
				a.Claim = &corev1.ObjectReference{Namespace: "shop", Name: tc.claim}
			}
			done, err := Adopt(t.Context(), c, a)
			if tc.refusal != "" {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.refusal) {
					t.Errorf("error %v, want %q", err, tc.refusal)
				}
				return
			}
			if err != nil || done.Rebound != tc.rebound || done.NewVolume || done.NewPersistentVolume {
				t.Fatalf("%+v, %v", done, err)
			}
			pv := &corev1.PersistentVolume{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "data"}, pv); err != nil {
				t.Fatal(err)
			}
			if ref := pv.Spec.ClaimRef; tc.rebound && (ref.Name != tc.claim || ref.UID != "") {
				t.Errorf("it is kept for %+v", ref)
			}
		})
	}
}

func TestNothingIsMadeForAClaimThatCannotHaveIt(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, node(orphaned(lost)), claimed("another", "younger"))
	a := Adoption{Node: "n1", Name: lost, Claim: &corev1.ObjectReference{Namespace: "shop", Name: "db"}}
	if _, err := Adopt(t.Context(), c, a); !errors.Is(err, ErrRefused) {
		t.Errorf("error %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: lost}, &v1alpha1.Volume{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a Volume was made: %v", err)
	}
}
