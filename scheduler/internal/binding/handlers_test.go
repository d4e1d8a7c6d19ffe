package binding

import (
	"testing"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// counted is a factory that counts the handlers of pods, through each interface on
// the way to their informer.
type (
	counted struct {
		informers.SharedInformerFactory
		handlers *int
	}
	countedCore struct {
		core.Interface
		handlers *int
	}
	countedV1 struct {
		corev1informers.Interface
		handlers *int
	}
	countedPods struct {
		corev1informers.TypedPodInformer
		handlers *int
	}
	countedInformer struct {
		cache.SharedIndexInformer
		handlers *int
	}
)

func (c counted) Core() core.Interface {
	return countedCore{c.SharedInformerFactory.Core(), c.handlers}
}
func (c countedCore) V1() corev1informers.Interface {
	return countedV1{c.Interface.V1(), c.handlers}
}
func (c countedV1) Pods() corev1informers.TypedPodInformer {
	return countedPods{c.Interface.Pods(), c.handlers}
}
func (c countedPods) Informer() cache.SharedIndexInformer {
	return countedInformer{c.TypedPodInformer.Informer(), c.handlers}
}
func (c countedInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	*c.handlers++
	return c.SharedIndexInformer.AddEventHandler(h)
}

func TestPodsWithoutVolumesCostNoCall(t *testing.T) {
	factory := counted{informers.NewSharedInformerFactory(fake.NewClientset(), 0), new(int)}
	if _, err := NewBinder(upstream{}, fake.NewClientset(), factory, time.Minute); err != nil {
		t.Fatal(err)
	}
	if *factory.handlers != 0 {
		t.Errorf("%d handlers are called for every change of every pod", *factory.handlers)
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil || *factory.handlers != 1 {
		t.Errorf("a handler is not counted: %d, %v", *factory.handlers, err)
	}
}
