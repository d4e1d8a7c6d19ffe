package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

func TestFilter(t *testing.T) {
	tests := map[string]struct {
		nodes nodeSpec
		setUp func(c *cluster)
		pod   func(c *cluster) *corev1.Pod
		code  fwk.Code
		why   string
	}{
		"a claim that fits": {
			nodes: node("n1", 10*gi),
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", 3*gi); return podWith("p", "a") },
		},
		"a claim that is larger than what is free": {
			nodes: node("n1", 10*gi),
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", 11*gi); return podWith("p", "a") },
			code:  fwk.UnschedulableAndUnresolvable, why: "not enough free space in a pool",
		},
		"claims that fit one by one and not together": {
			nodes: node("n1", 4*gi, 4*gi),
			pod: func(c *cluster) *corev1.Pod {
				c.claim("a", 3*gi)
				c.claim("b", 3*gi)
				c.claim("c", 3*gi)
				return podWith("p", "a", "b", "c")
			},
			code: fwk.UnschedulableAndUnresolvable, why: "volumes together",
		},
		"a node without storage": {
			nodes: node("n1"),
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", gi); return podWith("p", "a") },
			code:  fwk.UnschedulableAndUnresolvable, why: "no pool of the PoolClass",
		},
		"a node whose agent is silent": {
			nodes: nodeSpec{name: "n1", pools: []int64{10 * gi}, silent: true},
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", gi); return podWith("p", "a") },
			code:  fwk.UnschedulableAndUnresolvable, why: "silent or not ready",
		},
		"room that another pod has reserved": {
			nodes: node("n1", 4*gi),
			setUp: func(c *cluster) {
				r, _ := c.ledger.Request(ledger.RequestOptions{Pod: "other"}, ledger.Demand{Owner: ledger.Claim("other"), Class: "fast", Bytes: 3 * gi})
				c.ledger.Reserve("n1", r)
			},
			pod:  func(c *cluster) *corev1.Pod { c.claim("a", 3*gi); return podWith("p", "a") },
			code: fwk.UnschedulableAndUnresolvable, why: "not enough free space in a pool",
		},
		"room that is taken by the inline volume of a less important pod": {
			nodes: node("n1", 4*gi),
			setUp: func(c *cluster) { c.run(podWithInline("low", 3*gi), "n1", 3*gi, -1) },
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", 3*gi); return podWith("p", "a") },
			code:  fwk.Unschedulable, why: "not enough free space in a pool",
		},
		"room that is taken by the inline volume of an equally important pod": {
			nodes: node("n1", 4*gi),
			setUp: func(c *cluster) { c.run(podWithInline("low", 3*gi), "n1", 3*gi, 0) },
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", 3*gi); return podWith("p", "a") },
			code:  fwk.UnschedulableAndUnresolvable, why: "not enough free space in a pool",
		},
		"an eviction that would not free enough": {
			nodes: node("n1", 4*gi),
			setUp: func(c *cluster) { c.run(podWithInline("low", 3*gi), "n1", 3*gi, -1) },
			pod:   func(c *cluster) *corev1.Pod { c.claim("a", 5*gi); return podWith("p", "a") },
			code:  fwk.UnschedulableAndUnresolvable, why: "not enough free space in a pool",
		},
		"an inline volume that fits": {
			nodes: node("n1", 4*gi),
			pod:   func(*cluster) *corev1.Pod { return podWithInline("p", 3*gi) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.nodes)
			if test.setUp != nil {
				test.setUp(c)
			}
			pod := test.pod(c)
			status := c.RunFilterPlugins(t.Context(), c.begin(t, pod), pod, c.info("n1"))
			if status.Code() != test.code || !strings.Contains(status.Message(), test.why) {
				t.Errorf("got %v %q, want %v with %q", status.Code(), status.Message(), test.code, test.why)
			}
		})
	}
}

func TestPreFilter(t *testing.T) {
	tests := map[string]struct {
		pod  func(c *cluster) *corev1.Pod
		code fwk.Code
		why  string
		only []string // nodes
	}{
		"a pod without volumes is skipped": {
			pod: func(*cluster) *corev1.Pod { return podWith("p") }, code: fwk.Skip,
		},
		"a pod with other volumes is skipped": {
			pod: func(*cluster) *corev1.Pod {
				pod := podWith("p")
				pod.Spec.Volumes = []corev1.Volume{{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
				return pod
			}, code: fwk.Skip,
		},
		"an unbound claim goes on": {
			pod: func(c *cluster) *corev1.Pod { c.claim("a", gi); return podWith("p", "a") },
		},
		"a bound claim narrows the nodes to its own": {
			pod:  func(c *cluster) *corev1.Pod { c.bound("a", "n2"); return podWith("p", "a") },
			only: []string{"n2"},
		},
		"bound claims on two nodes leave no node": {
			pod: func(c *cluster) *corev1.Pod {
				c.bound("a", "n1")
				c.bound("b", "n2")
				return podWith("p", "a", "b")
			},
			only: []string{},
		},
		"a claim of a class that nobody defined": {
			pod: func(c *cluster) *corev1.Pod {
				c.claim("a", gi)
				c.ledger.ObserveClassGone("fast")
				return podWith("p", "a")
			},
			code: fwk.UnschedulableAndUnresolvable, why: "PoolClass that the pod's volumes need does not exist",
		},
		"a claim that is being deleted": {
			pod: func(c *cluster) *corev1.Pod {
				claim := c.claim("a", gi)
				claim.DeletionTimestamp = &claim.CreationTimestamp
				return podWith("p", "a")
			},
			code: fwk.UnschedulableAndUnresolvable, why: `"a" is being deleted`,
		},
		"an inline volume with a parameter that does not exist": {
			pod: func(*cluster) *corev1.Pod {
				pod := podWithInline("p", gi)
				pod.Spec.Volumes[0].CSI.VolumeAttributes["color"] = "blue"
				return pod
			},
			code: fwk.UnschedulableAndUnresolvable, why: "color",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, node("n1", 10*gi), node("n2", 10*gi))
			result, status := c.PreFilter(t.Context(), framework.NewCycleState(), test.pod(c), nil)
			if status.Code() != test.code || !strings.Contains(status.Message(), test.why) {
				t.Fatalf("got %v %q, want %v with %q", status.Code(), status.Message(), test.code, test.why)
			}
			if (test.only != nil) == result.AllNodes() || test.only != nil && !result.NodeNames.HasAll(test.only...) || test.only != nil && len(test.only) != len(result.NodeNames) {
				t.Errorf("got %v, want the nodes %v", result, test.only)
			}
		})
	}
}

func TestNothingIsAnsweredBeforeTheLedgerIsComplete(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.Book = ledger.New()
	c.claim("a", gi)
	_, status := c.PreFilter(t.Context(), framework.NewCycleState(), podWith("p", "a"), nil)
	if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "not complete") {
		t.Errorf("got %v, want a refusal that says so", status)
	}
	_, status = c.PreFilter(t.Context(), framework.NewCycleState(), podWith("q"), nil)
	if !status.IsSkip() {
		t.Errorf("got %v for a pod without volumes, want it to be skipped", status)
	}
}

func TestEveryReasonHasItsPhrase(t *testing.T) {
	for reason := ledger.Fits + 1; reason <= ledger.TooManyWays; reason++ {
		if _, known := phrases[reason]; !known {
			t.Errorf("%v has no phrase", reason)
		}
	}
}

func TestSignatures(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.claim("a", gi)
	sign := func(pod *corev1.Pod) string {
		fragments, status := c.Plugin.SignPod(t.Context(), pod)
		if !status.IsSuccess() {
			return "unsigned"
		}
		if len(fragments) == 0 {
			return ""
		}
		return fragments[0].Key
	}
	if got := sign(podWith("p")); got != "" {
		t.Errorf("a pod without volumes is signed with %q, want nothing", got)
	}
	if got := sign(podWith("p", "a")); got != "unsigned" {
		t.Errorf("a pod with a claim is signed with %q", got)
	}
	if got := sign(podWithInline("p", gi)); got != fwk.VolumesSignerName {
		t.Errorf("a pod with an inline volume is signed with %q, want its volumes", got)
	}
}

func TestAPodWithoutVolumesOfBerthCostsNoAllocation(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	pod := podWith("p")
	pod.Spec.Volumes = []corev1.Volume{{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	reader := schedule.Reader{Driver: driver.Local(), Objects: c.objects}
	allocations := testing.AllocsPerRun(100, func() {
		if want, err := reader.Read(t.Context(), pod); want != nil || err != nil {
			t.Error(want, err)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkFilter(b *testing.B) {
	c := newCluster(b, node("n1", 10*gi, 10*gi))
	for _, claims := range [][]string{{"a"}, {"a", "b", "c"}} {
		for _, name := range claims {
			c.claim(name, gi)
		}
		pod := podWith("p", claims...)
		state, info := c.begin(b, pod), c.info("n1")
		b.Run(strings.Join(claims, "+"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if status := c.Filter(b.Context(), state, pod, info); status != nil {
					b.Fatal(status)
				}
			}
		})
	}
}
