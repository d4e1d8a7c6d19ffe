package controller_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
)

func TestACreateCostsTwoWritesToTheVolumeAndNoList(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	requests := &controllertest.Requests{}
	p := controllertest.Start(t, c.Environment, controllertest.WithConfig(requests.Count(c.Config)))
	mustCreate(t, p, c.request(n)) // this does the work that is done once at the start
	watcher, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := watcher.Watch(t.Context(), &v1alpha1.VolumeList{}, client.HasLabels{v1alpha1.ReplicaLabel(n.Name)})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	requests.Reset()

	counted := mustCreate(t, p, c.request(n)).ID

	asked := requests.Take()
	if want := []string{"POST /apis/berth.dev/v1alpha1/volumes"}; !slices.Equal(own(asked), want) {
		t.Errorf("the controller asked %v, want %v", own(asked), want)
	}
	// Deleting a later volume is work for the reconcilers, so they have seen the
	// counted one by the time it is gone.
	mustDelete(t, p, mustCreate(t, p, c.request(n)).ID)
	for _, request := range requests.Take() {
		if strings.HasPrefix(request, "LIST ") {
			t.Errorf("listed after the start: %s", request)
		}
		if strings.Contains(request, counted) && !strings.HasPrefix(request, "GET ") {
			t.Errorf("a third write: %s", request)
		}
	}
	mustDelete(t, p, counted)
	want := []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Deleted}
	if got := history(t, changes, counted); !slices.Equal(got, want) {
		t.Errorf("the volume's life is %v, want %v", got, want)
	}
}

// own are the requests about volumes that belong to a call.
func own(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(r string) bool {
		return strings.HasPrefix(r, "WATCH ") || !strings.Contains(r, "/volumes")
	})
}

// history is every change of a volume until it is gone: create and entry; then
// deletion mark, entry Gone, and the end.
func history(t *testing.T, changes watch.Interface, id string) []watch.EventType {
	t.Helper()
	var list []watch.EventType
	for event := range changes.ResultChan() {
		v, ok := event.Object.(*v1alpha1.Volume)
		if !ok || v.Name != id {
			continue
		}
		list = append(list, event.Type)
		if event.Type == watch.Deleted {
			return list
		}
	}
	t.Fatal("the watch ended early")
	return nil
}

func TestARepeatedCreateWritesNothing(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	requests := &controllertest.Requests{}
	p := controllertest.Start(t, c.Environment, controllertest.WithConfig(requests.Count(c.Config)))
	r := c.request(n)
	mustCreate(t, p, r)
	requests.Reset()

	mustCreate(t, p, r)

	if got, want := own(requests.Take()), []string{"GET /apis/berth.dev/v1alpha1/volumes/" + r.Name}; !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}
