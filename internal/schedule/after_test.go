package schedule

import (
	"slices"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// caught is an informer that keeps the handler it is given.
type caught struct{ cache.ResourceEventHandler }

func (c *caught) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	c.ResourceEventHandler = h
	return nil, nil
}

func TestAHandlerChainedAfterTheLedgerSeesTheLedgersNewState(t *testing.T) {
	f, informer := newFed(t), &caught{}
	var free []int64
	look := func() { free = append(free, f.book.Room("n1", "fast").Largest/gi) }
	chained := After(informer, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { look() }, UpdateFunc: func(any, any) { look() }, DeleteFunc: func(any) { look() },
	})
	if _, err := chained.AddEventHandler(handler(f.observeVolume, f.forgetVolume)); err != nil {
		t.Fatal(err)
	}
	small, large := volumeFor("1", "n1", gi), volumeFor("1", "n1", 3*gi)
	informer.OnAdd(small, true)
	informer.OnUpdate(small, large)
	informer.OnDelete(cache.DeletedFinalStateUnknown{Key: "x", Obj: large})
	if want := []int64{9, 7, 10}; !slices.Equal(free, want) {
		t.Errorf("it saw %v GiB free, want %v", free, want)
	}
}
