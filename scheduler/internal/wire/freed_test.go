package wire

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// report tells the ledger of a node with room.
func report(t *testing.T, l *ledger.Ledger, name string, ready bool, features ...string) {
	t.Helper()
	err := l.ObserveNode(ledger.Report{Node: name, Ready: ready, Features: features, Pools: []ledger.Pool{
		{Name: "vg0", Kind: ledger.Thick, Total: 4 * gi, Unit: 4 << 20, Classes: []string{"fast"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// watched puts the waker behind informers, and returns their source.
func (s *station) watched() (*schedule.Informers, *informer) {
	source := &informer{}
	from := &schedule.Informers{Driver: driver.Local(), StorageNodes: source, PoolClasses: source, Volumes: source, Claims: source, Pods: source}
	s.watch(from)
	return from, source
}

// wanting reads what the pods want, as change says.
type wanting struct {
	reader
	change func(*schedule.PodVolumes)
}

func (w wanting) Read(ctx context.Context, pod *corev1.Pod) (*schedule.PodVolumes, error) {
	v, err := w.reader.Read(ctx, pod)
	w.change(v)
	return v, err
}

// The StorageNode of a new node comes before the first Lease of its agent.
func TestANewNodeWakesThePodsThatFitThereOnceItsAgentIsHeard(t *testing.T) {
	s := newStation(t)
	from, _ := s.watched()
	s.refuse(t, podOf("a", "one"))
	report(t, s.ledger, "n2", false)
	node := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	if woken := s.lookAgain(t, func() { s.reports().OnAdd(node, false) }); woken != nil {
		t.Errorf("%v is woken before the agent is heard", woken)
	}
	report(t, s.ledger, "n2", true)
	if woken := s.lookAgain(t, func() { from.Returned("n2") }); len(woken) != 1 {
		t.Errorf("woken are %v, want the pod", woken)
	}
}

func TestAnAgentThatIsUpgradedWakesThePodsThatNeedItsFeature(t *testing.T) {
	s := newStation(t)
	s.use(wanting{change: func(v *schedule.PodVolumes) { v.Wanted[0].Demand.Feature = v1alpha1.FeatureMkfsOptions }})
	report(t, s.ledger, "n1", true)
	s.refuse(t, podOf("a", "one"))
	node := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	report(t, s.ledger, "n1", true, v1alpha1.FeatureMkfsOptions)
	if woken := s.lookAgain(t, func() { s.reports().OnUpdate(node, node) }); len(woken) != 1 {
		t.Errorf("woken are %v, want the pod", woken)
	}
}

func TestAPoolClassThatIsMadeAnewWakesThePodsThatItMadeWait(t *testing.T) {
	s := newStation(t)
	from, source := s.watched()
	s.use(wanting{change: func(v *schedule.PodVolumes) {
		v.Wanted, v.Unready = nil, `claim "a": a filesystem xfs is not for PoolClass fast`
	}})
	s.refuse(t, podOf("a", "one"))
	if _, err := from.PoolClasses.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil { // as the ledger does
		t.Fatal(err)
	}
	if woken := s.lookAgain(t, func() { source.handler.OnAdd(&v1alpha1.PoolClass{}, false) }); len(woken) != 1 {
		t.Errorf("woken are %v, want the pod", woken)
	}
}
