package wire

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/scheduler/internal/plugin"
)

const gi = int64(1) << 30

// reader says that every pod wants 3 GiB of class fast.
type reader struct{}

func (reader) Read(_ context.Context, pod *corev1.Pod) (*schedule.PodVolumes, error) {
	demand := ledger.Demand{Owner: ledger.Inline(string(pod.UID), "v"), Class: "fast", Bytes: 3 * gi}
	return &schedule.PodVolumes{Wanted: []schedule.Wanted{{Demand: demand}}}, nil
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

func podOf(name, profile string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name)}}
	pod.Spec.SchedulerName = profile
	return pod
}

// nodeOf has one pool of this size.
func nodeOf(t *testing.T, l *ledger.Ledger, name string, total int64) {
	t.Helper()
	err := l.ObserveNode(ledger.Report{Node: name, Ready: true, Pools: []ledger.Pool{
		{Name: "vg0", Kind: ledger.Thick, Total: total, Unit: 4 << 20, Classes: []string{"fast"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// station is a waker with two profiles, before a full node.
type station struct {
	*waker
	clock    *clocktesting.FakeClock
	ledger   *ledger.Ledger
	reads    plugin.Reader
	one, two queue
}

// use replaces the reader of pods.
func (s *station) use(r plugin.Reader) { s.reads, s.reader = r, r }

func newStation(t *testing.T) *station {
	t.Helper()
	l := ledger.New()
	if err := l.ObserveClass(ledger.Class{Name: "fast", InlineNamespaces: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	nodeOf(t, l, "n1", gi)
	l.SetSynced()
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := &station{waker: newWaker(l, reader{}, c), clock: c, ledger: l, reads: reader{}, one: queue{"one", make(chan []string, 9)}, two: queue{"two", make(chan []string, 9)}}
	s.add(s.one)
	s.add(s.two)
	return s
}

// refuse runs a pod's cycle up to where it is refused, at the latest on node n1.
func (s *station) refuse(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	p := &plugin.Plugin{Driver: driver.Local(), Book: s.ledger, Reader: s.reads, Refusals: s.refusals}
	state := framework.NewCycleState()
	if _, status := p.PreFilter(t.Context(), state, pod, nil); !status.IsSuccess() {
		return
	}
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if status := p.Filter(t.Context(), state, pod, info); status.IsSuccess() {
		t.Fatal("the pod fits")
	}
}

func (s *station) woken() (one, two []string) {
	for {
		select {
		case one = <-s.one.activated:
		case two = <-s.two.activated:
		default:
			return one, two
		}
	}
}

func TestRefusedPodsAreWokenInTheirProfileWhenTheyFit(t *testing.T) {
	s := newStation(t)
	s.refuse(t, podOf("a", "one"))
	s.refuse(t, podOf("b", "two"))
	s.freed("n1")
	s.look(t.Context())
	if one, two := s.woken(); one != nil || two != nil {
		t.Errorf("woken are %v and %v although the node is full still", one, two)
	}
	nodeOf(t, s.ledger, "n1", 4*gi)
	s.freed("n2")
	s.look(t.Context())
	if one, two := s.woken(); one != nil || two != nil {
		t.Errorf("woken are %v and %v although another node was freed", one, two)
	}
	s.freed("n1")
	s.look(t.Context())
	if one, two := s.woken(); !slices.Equal(one, []string{"d/a"}) || !slices.Equal(two, []string{"d/b"}) {
		t.Errorf("woken are %v and %v, want a and b", one, two)
	}
}

func TestAPodThatIsBoundIsNotWoken(t *testing.T) {
	s := newStation(t)
	pod := podOf("a", "one")
	s.refuse(t, pod)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n1"
	s.pods().OnUpdate(pod, bound)
	s.everything()
	s.look(t.Context())
	if one, _ := s.woken(); one != nil {
		t.Errorf("woken are %v", one)
	}
}

// lookAgain tells of a change that frees room and lets the waker look at it.
func (s *station) lookAgain(t *testing.T, tell func()) []string {
	t.Helper()
	tell()
	s.look(t.Context())
	one, _ := s.woken()
	return one
}

func TestAPodIsNotWokenForNodesThatBerthNeverRefused(t *testing.T) {
	s := newStation(t)
	nodeOf(t, s.ledger, "n2", 100*gi) // where others refuse the pod, for want of processors say
	s.refuse(t, podOf("a", "one"))
	if woken := s.lookAgain(t, func() { s.freed("n2") }); woken != nil {
		t.Errorf("woken are %v", woken)
	}
}

func TestAPodThatIsRefusedAgainAndAgainIsWokenLessAndLess(t *testing.T) {
	s := newStation(t)
	pod, woken := podOf("a", "one"), 0
	for range 60 { // seconds
		nodeOf(t, s.ledger, "n1", gi)
		s.refuse(t, pod) // and nodes that come free meanwhile, and are taken again
		nodeOf(t, s.ledger, "n1", 4*gi)
		for range 5 {
			woken += len(s.lookAgain(t, func() { s.freed("n1") }))
		}
		s.clock.Step(time.Second)
	}
	if woken < 6 || woken > 12 {
		t.Errorf("the pod was woken %d times in a minute", woken)
	}
}

func TestAPodThatHasToRestIsWokenWhenItHasRested(t *testing.T) {
	s := newStation(t)
	pod := podOf("a", "one")
	s.refuse(t, pod)
	nodeOf(t, s.ledger, "n1", 4*gi)
	if woken := s.lookAgain(t, func() { s.freed("n1") }); len(woken) != 1 {
		t.Fatalf("woken are %v, want the pod", woken)
	}
	nodeOf(t, s.ledger, "n1", gi)
	s.refuse(t, pod)
	nodeOf(t, s.ledger, "n1", 4*gi)
	if woken := s.lookAgain(t, func() { s.freed("n1") }); woken != nil {
		t.Errorf("%v is woken at once", woken)
	}
	<-s.due // the changes it was told of above
	s.clock.Step(time.Second)
	<-s.due
	if woken := s.lookAgain(t, func() {}); len(woken) != 1 {
		t.Errorf("woken are %v, want the pod that has rested", woken)
	}
}

func TestANodeThatServesANewClassWakesThePodsThatFitThere(t *testing.T) {
	s := newStation(t)
	s.refuse(t, podOf("a", "one"))
	nodeOf(t, s.ledger, "n2", 4*gi)
	serving := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	serving.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Classes: []string{"fast"}}}
	before := serving.DeepCopy()
	before.Status.Pools[0].Classes = nil
	if woken := s.lookAgain(t, func() { s.reports().OnUpdate(serving, serving) }); woken != nil {
		t.Errorf("%v is woken by a report that changes nothing", woken)
	}
	if woken := s.lookAgain(t, func() { s.reports().OnUpdate(before, serving) }); len(woken) != 1 {
		t.Errorf("woken are %v, want the pod", woken)
	}
}

func TestAPodIsReadOnceHoweverManyNodesAreFreed(t *testing.T) {
	s := newStation(t)
	var nodes []string
	for i := range 9 {
		nodes = append(nodes, fmt.Sprint("m", i))
		nodeOf(t, s.ledger, nodes[i], gi)
		s.open(nodes[i])
	}
	s.refuse(t, podOf("a", "one"))
	counting := &reads{}
	s.use(counting)
	s.look(t.Context())
	if counting.n != 1 {
		t.Errorf("the pod was read %d times", counting.n)
	}
}

// reads is a reader that counts.
type reads struct {
	reader
	n int
}

func (r *reads) Read(ctx context.Context, pod *corev1.Pod) (*schedule.PodVolumes, error) {
	r.n++
	return r.reader.Read(ctx, pod)
}

func TestAPodThatIsGoneBeforeItsCycleBeginsIsNotRemembered(t *testing.T) {
	s := newStation(t)
	s.refusals.Exists = func(*corev1.Pod) bool { return false }
	s.refuse(t, podOf("a", "one"))
	if pods := s.refusals.Pods(); len(pods) != 0 {
		t.Errorf("%d pods are remembered", len(pods))
	}
}

func TestTheWakerRunsUntilItIsStopped(t *testing.T) {
	s := newStation(t)
	s.refuse(t, podOf("a", "one"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.run(ctx); close(done) }()
	for range 5 {
		s.everything() // never blocks, and need not be heard each time
	}
	<-s.one.activated
	cancel()
	<-done
}

// informer hands its one handler out.
type informer struct{ handler cache.ResourceEventHandler }

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return nil, nil
}

func TestTheWakerHearsOfFreedRoomAfterTheLedger(t *testing.T) {
	volume := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{Replicas: []v1alpha1.ReplicaSpec{{Node: "n1"}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{schedule.SelectedNode: "n1"}}}
	ended := podOf("gone", "one")
	ended.Spec.NodeName, ended.Spec.Volumes = "n1", []corev1.Volume{{}}
	report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	tests := map[string]struct {
		from    func(*schedule.Informers) schedule.Informer
		happens func(cache.ResourceEventHandler)
		want    bool
	}{
		"a report":            {func(i *schedule.Informers) schedule.Informer { return i.StorageNodes }, func(h cache.ResourceEventHandler) { h.OnUpdate(report, report) }, true},
		"a Volume that goes":  {func(i *schedule.Informers) schedule.Informer { return i.Volumes }, func(h cache.ResourceEventHandler) { h.OnDelete(volume) }, true},
		"a Volume that moves": {func(i *schedule.Informers) schedule.Informer { return i.Volumes }, func(h cache.ResourceEventHandler) { h.OnUpdate(volume, &v1alpha1.Volume{}) }, true},
		"a new Volume":        {func(i *schedule.Informers) schedule.Informer { return i.Volumes }, func(h cache.ResourceEventHandler) { h.OnAdd(volume, false) }, false},
		"a claim that loses its node": {func(i *schedule.Informers) schedule.Informer { return i.Claims }, func(h cache.ResourceEventHandler) {
			h.OnUpdate(claim, &corev1.PersistentVolumeClaim{})
		}, true},
		"a pod that has ended": {func(i *schedule.Informers) schedule.Informer { return i.Pods }, func(h cache.ResourceEventHandler) {
			succeeded := ended.DeepCopy()
			succeeded.Status.Phase = corev1.PodSucceeded
			h.OnUpdate(ended, succeeded)
		}, true},
		"a pod that is gone, and it was missed": {func(i *schedule.Informers) schedule.Informer { return i.Pods }, func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: ended}) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, source := newStation(t), &informer{}
			from := &schedule.Informers{Driver: driver.Local(), StorageNodes: source, PoolClasses: source, Volumes: source, Claims: source, Pods: source}
			s.watch(from)
			told := false
			first := func() {
				told = true
				if len(s.nodes) > 0 {
					t.Error("the waker was told before the ledger")
				}
			}
			_, err := test.from(from).AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { first() }, UpdateFunc: func(any, any) { first() }, DeleteFunc: func(any) { first() },
			})
			if err != nil {
				t.Fatal(err)
			}
			test.happens(source.handler)
			if !told || s.nodes["n1"] != test.want {
				t.Errorf("the ledger was told: %v; node n1 is freed: %v, want %v", told, s.nodes["n1"], test.want)
			}
		})
	}
}
