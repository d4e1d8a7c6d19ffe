package wire

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/internal/schedule"
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
		"a strategy that nobody knows": {given: &runtime.Unknown{Raw: []byte(`{"strategy":"Random"}`)}, why: "neither Spread nor Binpack"},
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

func TestTheIndexHoldsVolumesThatNobodyHas(t *testing.T) {
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

// reader says that pods whose names begin with "b" want something of Berth.
type reader struct{}

func (reader) Read(_ context.Context, pod *corev1.Pod) (*schedule.PodVolumes, error) {
	if strings.HasPrefix(pod.Name, "b") {
		return &schedule.PodVolumes{}, nil
	}
	return nil, nil
}

// queue is the scheduling queue of a profile.
type queue struct {
	name      string
	activated chan []string
}

func (q queue) ProfileName() string { return q.name }

func (q queue) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	var names []string
	for key := range pods {
		names = append(names, key)
	}
	slices.Sort(names)
	q.activated <- names
}

func TestTheWakerActivatesThePodsThatWaitForBerthInTheirOwnProfile(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, each := range []struct{ name, profile, node string }{
		{"b1", "one", ""}, {"b2", "one", ""}, {"b3", "two", ""}, {"bound", "one", "n1"}, {"other", "one", ""}, {"beyond", "stock", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: each.name}}
		pod.Spec.SchedulerName, pod.Spec.NodeName = each.profile, each.node
		if err := store.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	one, two := queue{"one", make(chan []string, 9)}, queue{"two", make(chan []string, 9)}
	w := newWaker(reader{}, corelisters.NewPodLister(store))
	w.add(one)
	w.add(two)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	for range 5 {
		w.wake() // never blocks, and need not be heard each time
	}
	if got := <-one.activated; !slices.Equal(got, []string{"d/b1", "d/b2"}) {
		t.Errorf("profile one: %v, want b1 and b2", got)
	}
	if got := <-two.activated; !slices.Equal(got, []string{"d/b3"}) {
		t.Errorf("profile two: %v, want b3", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
