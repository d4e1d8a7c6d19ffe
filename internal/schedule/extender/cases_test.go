package extender

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/schedule/cases"
)

// world holds the objects that an extender reads: a cluster, and its pods that wait for a node.
type world struct {
	*schedule.Lists
	pods []*corev1.Pod
}

func (w *world) Pod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	for _, pod := range w.pods {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, nil
		}
	}
	return nil, nil
}

func worldOf(c *cases.Case) *world { return &world{Lists: &c.Lists, pods: []*corev1.Pod{c.Pod}} }

// asked is an extender on a cluster, and the scheduler that asks it.
type asked struct {
	t     *testing.T
	world *world // as the cache has it
	book  *schedule.Book
	holds *Holds
	clock *clocktesting.FakeClock
	url   string
	ready error
}

func ask(t *testing.T, c *cases.Case) *asked {
	t.Helper()
	return askOn(t, c, worldOf(c), &world{Lists: &schedule.Lists{}})
}

// misses is how often these tests' extenders may ask the API server.
const misses = 30

// askOn asks an extender whose cache may lack existing objects.
func askOn(t *testing.T, c *cases.Case, cached, live *world) *asked {
	t.Helper()
	a := &asked{t: t, world: cached, book: c.Book(), clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	a.holds = NewHolds(a.book, a.clock)
	limit := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(1, misses, a.clock)
	e := &Extender{Driver: driver.Local(), Book: a.book, Objects: Objects{Source: cached, Live: live, Misses: limit}, Holds: a.holds}
	server := httptest.NewServer(Handler(e, func() error { return a.ready }, logr.Discard()))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func TestTheExtenderAnswersEveryCase(t *testing.T) {
	for name, c := range cases.All() {
		t.Run(name, func(t *testing.T) { ask(t, &c).answers(&c) })
		t.Run(name+", of a pod, claims and classes that its cache has not heard of", func(t *testing.T) {
			cached := c.Lists
			cached.Claims, cached.StorageClasses = nil, nil
			askOn(t, &c, &world{Lists: &cached}, worldOf(&c)).answers(&c)
		})
	}
}

// answers checks the answer to a case.
func (a *asked) answers(c *cases.Case) {
	t := a.t
	t.Helper()
	nodes := slices.Sorted(maps.Keys(c.Nodes))
	if c.Unready != "" {
		nodes = []string{"large"}
	}
	got := a.filter(c.Pod, nodes)
	for node, want := range c.Nodes {
		if fits := slices.Contains(*got.NodeNames, node); fits != (want.Reason == ledger.Fits) {
			t.Errorf("node %s fits: %v, want %v (%v)", node, fits, want.Reason, got)
		}
		told := got.FailedNodes[node] + got.FailedAndUnresolvableNodes[node]
		if (told == "") != (want.Reason == ledger.Fits) || !strings.Contains(told, want.Told) {
			t.Errorf("node %s: told %q, want %q", node, told, want.Told)
		}
	}
	if c.Unready != "" && !strings.Contains(got.FailedAndUnresolvableNodes["large"], c.Unready) {
		t.Errorf("not told why: %+v", got)
	}
	if c.Best == "" {
		return
	}
	best := slices.MaxFunc(a.prioritize(c.Pod, *got.NodeNames), func(x, y HostPriority) int { return int(x.Score - y.Score) })
	if best.Host != c.Best {
		t.Errorf("the best node is %+v, want %s", best, c.Best)
	}
}

func TestTheExtenderAnswersWithTheRightHTTPStatus(t *testing.T) {
	c := cases.All()["one claim goes where there is room"]
	a := ask(t, &c)
	a.world.pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "plain", UID: "u"}}}
	const plain = `"Pod":{"metadata":{"namespace":"x","name":"plain","uid":"u"}}`
	tests := map[string]struct {
		path, body string
		ready      error
		status     int
	}{
		"the server is not the leader": {"/filter", `{}`, http.ErrServerClosed, http.StatusServiceUnavailable},
		"a malformed question":         {"/filter", `nonsense`, nil, http.StatusBadRequest},
		"no pod":                       {"/filter", `{"NodeNames":[]}`, nil, http.StatusBadRequest},
		"whole nodes":                  {"/filter", `{` + plain + `,"Nodes":{"items":[]}}`, nil, http.StatusBadRequest},
		"an unknown verb":              {"/bind", `{}`, nil, http.StatusNotFound},
		"no nodes":                     {"/prioritize", `{` + plain + `,"NodeNames":[]}`, nil, http.StatusOK},
		"a pod without a volume":       {"/filter", `{` + plain + `,"NodeNames":["x"]}`, nil, http.StatusOK},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a.ready = test.ready
			if status, _ := a.post(test.path, strings.NewReader(test.body)); status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
		})
	}
}
