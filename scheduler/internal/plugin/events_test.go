package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// hint asks the hint that is registered for an event.
func (c *cluster) hint(t *testing.T, pod *corev1.Pod, resource fwk.EventResource, action fwk.ActionType, old, obj any) bool {
	t.Helper()
	events, err := c.EventsToRegister(t.Context())
	must(t, err)
	for _, e := range events {
		if e.Event.Resource == resource && e.Event.ActionType&action != 0 {
			hint, err := e.QueueingHintFn(klog.Background(), pod, old, obj)
			must(t, err)
			return hint == fwk.Queue
		}
	}
	return false
}

func TestOnlyEventsThatMayHelpWakeAPodThatFindsNoRoom(t *testing.T) {
	type occurrence struct {
		resource fwk.EventResource
		action   fwk.ActionType
		old, new any
	}
	on := func(resource fwk.EventResource, action fwk.ActionType, old, obj any) occurrence {
		return occurrence{resource, action, old, obj}
	}
	givenUp := podWith("given-up", "other")
	givenUp.Spec.NodeName = "full"
	elsewhere := podWith("elsewhere", "other")
	elsewhere.Spec.NodeName = "roomy"
	claimOf := func(namespace, name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	static := func(class string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{StorageClassName: class}}
	}
	storageClass := func(name string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	tests := map[string]struct {
		happens occurrence
		wakes   bool
	}{
		"a pod is given up on a node that is full still":        {happens: on(fwk.Pod, fwk.Delete, givenUp, nil)},
		"a pod is given up where there is room now":             {happens: on(fwk.Pod, fwk.Delete, elsewhere, nil), wakes: true},
		"a pod has gone where there is room, and it was missed": {happens: on(fwk.Pod, fwk.Delete, cache.DeletedFinalStateUnknown{Obj: elsewhere}, nil), wakes: true},
		"a pod that was never placed has gone":                  {happens: on(fwk.Pod, fwk.Delete, podWith("waits-too", "other"), nil)},
		"a pod without volumes ends":                            {happens: on(fwk.Pod, fwk.Delete, podWith("plain"), nil)},
		"its claim changes":                                     {happens: on(fwk.PersistentVolumeClaim, fwk.Update, nil, claimOf("default", "a")), wakes: true},
		"another claim changes":                                 {happens: on(fwk.PersistentVolumeClaim, fwk.Update, nil, claimOf("default", "b"))},
		"a claim of that name elsewhere changes":                {happens: on(fwk.PersistentVolumeClaim, fwk.Update, nil, claimOf("other", "a"))},
		"a static volume of its class appears":                  {happens: on(fwk.PersistentVolume, fwk.Add, nil, static("fast")), wakes: true},
		"a static volume of its class becomes available":        {happens: on(fwk.PersistentVolume, fwk.Update, nil, static("fast")), wakes: true},
		"a static volume of another class appears":              {happens: on(fwk.PersistentVolume, fwk.Add, nil, static("slow"))},
		"its storage class changes":                             {happens: on(fwk.StorageClass, fwk.Update, nil, storageClass("fast")), wakes: true},
		"another storage class changes":                         {happens: on(fwk.StorageClass, fwk.Update, nil, storageClass("slow"))},
		"a node appears that holds nothing of it":               {happens: on(fwk.Node, fwk.Add, nil, &corev1.Node{})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, node("full", 4*gi), node("roomy", 4*gi))
			c.run(podWithInline("gone", 3*gi), "full", 3*gi, 0)
			c.claim("a", 3*gi)
			h := test.happens
			if got := c.hint(t, podWith("p", "a"), h.resource, h.action, h.old, h.new); got != test.wakes {
				t.Errorf("the pod is woken: %v, want %v", got, test.wakes)
			}
		})
	}
}

func TestAPodThatSharesAClaimIsWokenWhenTheOtherIsGivenUp(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi))
	c.claim("a", 5*gi) // fits nowhere: only the claim counts
	other := podWith("other", "a")
	other.Spec.NodeName = "n2"
	if !c.hint(t, podWith("p", "a"), fwk.Pod, fwk.Delete, other, nil) {
		t.Error("the pod is not woken")
	}
}

func TestAPodWhoseNodeComesBackIsWoken(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi))
	c.bound("a", "n1")
	back := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if !c.hint(t, podWith("p", "a"), fwk.Node, fwk.Add, nil, back) {
		t.Error("the pod is not woken")
	}
}
