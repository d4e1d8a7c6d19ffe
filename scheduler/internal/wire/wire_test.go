package wire

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func TestArguments(t *testing.T) {
	tests := map[string]struct {
		given runtime.Object
		want  Args
		why   string // of the refusal
	}{
		"none":                         {want: Args{Namespace: "berth-system"}},
		"an empty object":              {given: &runtime.Unknown{Raw: []byte("{}")}, want: Args{Namespace: "berth-system"}},
		"all":                          {given: &runtime.Unknown{Raw: []byte(`{"strategy":"Binpack","namespace":"x"}`)}, want: Args{Strategy: "Binpack", Namespace: "x"}},
		"one that does not exist":      {given: &runtime.Unknown{Raw: []byte(`{"strategie":"Binpack"}`)}, why: "strategie"},
		"a strategy that nobody knows": {given: &runtime.Unknown{Raw: []byte(`{"strategy":"Random"}`)}, why: "none of Spread"},
		"arguments of another plugin":  {given: &corev1.Pod{}, why: "they are a *v1.Pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decode(test.given)
			if (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) {
				t.Fatalf("got error %v, want one with %q", err, test.why)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestKubernetesOwnObjectsAreSentAsTheyAreSmallest(t *testing.T) {
	scheduler := &rest.Config{ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf}}
	// A content type set here would hold for custom resources too, which must be
	// JSON.
	if ours := talk(scheduler); ours.ContentType != "" || ours.AcceptContentTypes != "" {
		t.Errorf("all kinds are sent as %q and asked for as %q", ours.ContentType, ours.AcceptContentTypes)
	}
	if scheduler.ContentType != runtime.ContentTypeProtobuf {
		t.Error("the scheduler's own connection was changed")
	}
}

func TestTheIndexHoldsOnlyVolumesThatNoClaimOwns(t *testing.T) {
	tests := map[string]struct {
		claim *corev1.ObjectReference
		in    bool
	}{
		"one without a claim":            {in: true},
		"one that is kept for a claim":   {claim: &corev1.ObjectReference{Name: "a"}, in: true},
		"one that belongs to a claim":    {claim: &corev1.ObjectReference{Name: "a", UID: "u"}},
		"one that was released and kept": {claim: &corev1.ObjectReference{Name: "gone", UID: "v"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			informer := cache.NewSharedIndexInformer(nil, &corev1.PersistentVolume{}, 0, cache.Indexers{})
			available, err := indexAvailable(informer)
			if err != nil {
				t.Fatal(err)
			}
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
			pv.Spec.StorageClassName, pv.Spec.ClaimRef = "fast", test.claim
			if err := informer.GetIndexer().Add(pv); err != nil {
				t.Fatal(err)
			}
			if available("fast") != test.in || available("slow") {
				t.Errorf("fast has some: %v, slow has some: %v; want %v and none", available("fast"), available("slow"), test.in)
			}
		})
	}
}
