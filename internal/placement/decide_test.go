package placement

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

func quantity(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }

// pool has 4Mi extents and serves the class "fast" unless options say otherwise.
func pool(name string, total int64, options ...func(*v1alpha1.Pool)) v1alpha1.Pool {
	p := v1alpha1.Pool{
		Name: name, Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy,
		Total: quantity(total), AllocationUnit: quantity(4 * mi), Classes: []string{"fast"},
	}
	for _, option := range options {
		option(&p)
	}
	return p
}

func foreign(bytes int64) func(*v1alpha1.Pool) {
	return func(p *v1alpha1.Pool) { p.Foreign = quantity(bytes) }
}

func serving(classes ...string) func(*v1alpha1.Pool) {
	return func(p *v1alpha1.Pool) { p.Classes = classes }
}

func sick(health v1alpha1.PoolHealth, message string) func(*v1alpha1.Pool) {
	return func(p *v1alpha1.Pool) { p.Health, p.Message = health, message }
}

func node(name string, pools ...v1alpha1.Pool) Node { return Node{Name: name, Pools: pools} }

func TestDecide(t *testing.T) {
	small, large := node("small", pool("vg", 10*gi)), node("large", pool("vg", 20*gi))
	tests := map[string]struct {
		request Request
		nodes   []Node
		usage   Usage
		want    string // node/pool
		reason  Reason
		message string
	}{
		"the node with most free space wins": {
			request: Request{Capacity: gi}, nodes: []Node{small, large}, want: "large/vg",
		},
		"volumes count against their pool": {
			request: Request{Capacity: gi}, nodes: []Node{small, large},
			usage: Usage{{"large", "vg"}: {15 * gi}}, want: "small/vg",
		},
		"foreign bytes count against their pool": {
			request: Request{Capacity: gi},
			nodes:   []Node{small, node("large", pool("vg", 20*gi, foreign(11*gi)))}, want: "small/vg",
		},
		"a preferred node wins though it has less": {
			request: Request{Capacity: gi, Preferred: []string{"small"}}, nodes: []Node{small, large}, want: "small/vg",
		},
		"a preferred node that is full gives way": {
			request: Request{Capacity: 15 * gi, Preferred: []string{"small"}}, nodes: []Node{small, large}, want: "large/vg",
		},
		"an allowed node is the only choice though it has less": {
			request: Request{Capacity: gi, Allowed: []string{"small"}}, nodes: []Node{small, large}, want: "small/vg",
		},
		"the larger of a node's pools is taken": {
			request: Request{Capacity: gi},
			nodes:   []Node{node("n", pool("a", 5*gi), pool("b", 8*gi))}, want: "n/b",
		},
		"a pool of another class is not used": {
			request: Request{Capacity: gi},
			nodes:   []Node{node("n", pool("a", 5*gi), pool("b", 8*gi, serving("slow")))}, want: "n/a",
		},
		"equal nodes are taken by name": {
			request: Request{Capacity: gi},
			nodes:   []Node{node("b", pool("vg", gi)), node("a", pool("vg", gi))}, want: "a/vg",
		},
		"the last byte may be used": {
			request: Request{Capacity: 10 * gi}, nodes: []Node{small}, want: "small/vg",
		},
		"spare bytes stay free": {
			request: Request{Capacity: 10 * gi, Spare: 4 * mi}, nodes: []Node{small},
			reason: NoSpace, message: "node small: volume group vg has 10236Mi free, 10Gi asked",
		},
		"sizes are rounded up to extents before they are compared": {
			request: Request{Capacity: 2*mi + 1}, nodes: []Node{node("n", pool("vg", 3*mi))},
			reason: NoSpace, message: "3Mi free",
		},
		"a limit that no extent meets is refused": {
			request: Request{Capacity: 5 * mi, Limit: 6 * mi}, nodes: []Node{small},
			reason: Unaligned, message: "multiples of 4Mi: 5Mi would become 8Mi, over the limit of 6Mi",
		},
		"a node that is away is not asked": {
			request: Request{Capacity: gi},
			nodes:   []Node{small, {Name: "large", Away: "its agent is silent", Pools: large.Pools}}, want: "small/vg",
		},
		"a node that refused is not asked again": {
			request: Request{Capacity: gi, Refused: map[string]string{"large": "full"}}, nodes: []Node{small, large}, want: "small/vg",
		},
		"when all refused their messages are told": {
			request: Request{Capacity: gi, Refused: map[string]string{"large": "no room", "small": "full"}}, nodes: []Node{small, large},
			reason: NoSpace, message: "node large: no room; node small: full",
		},
		"a degraded pool gets nothing new": {
			request: Request{Capacity: gi}, nodes: []Node{node("n", pool("vg", gi, sick(v1alpha1.PoolDegraded, "a disk is missing")))},
			reason: NoSpace, message: "node n: volume group vg is degraded: a disk is missing",
		},
		"a class that the allowed node lacks is said so": {
			request: Request{Capacity: gi, Allowed: []string{"n"}}, nodes: []Node{node("n", pool("vg", gi, serving("slow"))), large},
			reason: NotServed, message: `node n: has no pool of PoolClass "fast"`,
		},
		"a class that nobody serves is said so": {
			request: Request{Capacity: gi}, nodes: []Node{node("n", pool("vg", gi, serving("slow")))},
			reason: NotServed, message: `no node that may hold the volume has a pool of PoolClass "fast"`,
		},
		"no report at all points to the agents": {
			request: Request{Capacity: gi}, reason: NotServed, message: "berth-agent",
		},
		"an overfull pool shows nothing free": {
			request: Request{Capacity: gi}, nodes: []Node{small}, usage: Usage{{"small", "vg"}: {11 * gi}},
			reason: NoSpace, message: "has 0 free",
		},
		"a long list of nodes is cut short": {
			request: Request{Capacity: 50 * gi},
			nodes:   []Node{node("a", pool("vg", gi)), node("b", pool("vg", gi)), node("c", pool("vg", gi)), node("d", pool("vg", gi)), node("e", pool("vg", gi))},
			reason:  NoSpace, message: "and 2 more nodes",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.request.PoolClass = "fast"
			got := Decide(test.request, test.nodes, test.usage)
			if test.want != "" {
				if got.Reason != Placed || got.Node+"/"+got.Pool != test.want {
					t.Errorf("got %+v, want %s", got, test.want)
				}
				return
			}
			if got.Reason != test.reason || !strings.Contains(got.Message, test.message) {
				t.Errorf("got %s: %q, want %s: %q", got.Reason, got.Message, test.reason, test.message)
			}
			if got.Node != "" || got.Pool != "" {
				t.Errorf("a refusal names a place: %+v", got)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	tests := map[string]int64{
		"0": 0, "512": 512, "1Ki": 1 << 10, "32Mi": 32 * mi, "1.5Gi": 3 * gi / 2,
		"3068Mi": 3*gi - 4*mi, "3Gi": 3 * gi, "2Ti": 2048 * gi, "1025": 1025, "1048576Ti": 1 << 60,
	}
	for want, bytes := range tests {
		if got := Bytes(bytes); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", bytes, got, want)
		}
	}
}
