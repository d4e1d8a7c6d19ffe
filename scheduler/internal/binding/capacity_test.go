package binding

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

func announced(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "helm"}}},
		Spec:       storagev1.CSIDriverSpec{StorageCapacity: new(true), AttachRequired: new(false)},
	}
}

func TestOnlyBerthsDriversSeemToPublishNoCapacity(t *testing.T) {
	client := fake.NewClientset(announced(v1alpha1.LocalDriverName), announced("example.com"))
	factory := informers.NewSharedInformerFactory(client, 0)
	for range 2 { // once for each profile
		if err := MaskCapacity(factory); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for name, publishes := range map[string]bool{v1alpha1.LocalDriverName: false, "example.com": true} {
		d, err := factory.Storage().V1().CSIDrivers().Lister().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity; got != publishes {
			t.Errorf("CSIDriver %s publishes capacity: %v, want %v", name, got, publishes)
		}
		if d.Spec.AttachRequired == nil {
			t.Errorf("CSIDriver %s has lost its other fields", name)
		}
	}
}

func TestTheMaskLeavesAMissedDeletionAlone(t *testing.T) {
	unknown := cache.DeletedFinalStateUnknown{Key: "x", Obj: announced("x")}
	if got, err := maskCapacity(unknown); got != any(unknown) || err != nil {
		t.Errorf("got %v, %v; want it back as it was", got, err)
	}
}

func TestAMaskThatComesTooLateIsRefused(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	factory.Storage().V1().CSIDrivers().Informer()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if err := MaskCapacity(factory); err == nil {
		t.Error("the informer has started, and objects that were not masked may be in its cache")
	}
}
