package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

// story is a sequence of calls and a check of the final state. The sidecar repeats
// each call until it has the expected outcome.
type story struct {
	calls []call
	end   func() error
}

// call returns nil when it has the expected outcome.
type call func(ctx context.Context, v *volumes.Service) error

// stories makes each story with nodes and a volume of its own.
var stories = map[string]func(t *testing.T, c *cluster) story{
	"create": func(t *testing.T, c *cluster) story {
		n := c.node(t, "n", 10*gi)
		r := c.request(n)
		return story{calls: []call{createdOn(r, n)}, end: heldBy(t, c, r.Name, n, gi)}
	},
	"create, refused by the first node": func(t *testing.T, c *cluster) story {
		full, roomy := c.node(t, "full", 10*gi), c.node(t, "roomy", 10*gi)
		full.SetTotal(0)
		r := c.request(full)
		return story{
			calls: []call{refused(r), createdOn(on(r, roomy), roomy)},
			end:   heldBy(t, c, r.Name, roomy, gi, full),
		}
	},
	"create without topology, refused by the first node": func(t *testing.T, c *cluster) story {
		liar, honest := c.node(t, "liar", 20*gi), c.node(t, "honest", 10*gi)
		liar.SetTotal(0)
		r := c.request()
		return story{calls: []call{createdOn(r, honest)}, end: heldBy(t, c, r.Name, honest, gi, liar)}
	},
	"create, rescheduled after the carving": func(t *testing.T, c *cluster) story {
		a, b := c.node(t, "a", 10*gi), c.node(t, "b", 10*gi)
		r := c.request(a)
		return story{
			calls: []call{createdOn(r, a), createdOn(on(r, b), b)},
			end:   heldBy(t, c, r.Name, b, gi, a),
		}
	},
	"expand": func(t *testing.T, c *cluster) story {
		n := c.node(t, "n", 10*gi)
		r := c.request(n)
		return story{calls: []call{createdOn(r, n), expandedTo(r.Name, 2*gi)}, end: heldBy(t, c, r.Name, n, 2*gi)}
	},
	"expand, refused, and then less": func(t *testing.T, c *cluster) story {
		n := c.node(t, "n", 4*gi)
		r := c.request(n)
		return story{
			calls: []call{createdOn(r, n), tooLarge(r.Name, 8*gi), expandedTo(r.Name, 2*gi)},
			end:   heldBy(t, c, r.Name, n, 2*gi),
		}
	},
	"delete": func(t *testing.T, c *cluster) story {
		n := c.node(t, "n", 10*gi)
		r := c.request(n)
		return story{
			calls: []call{createdOn(r, n), func(ctx context.Context, v *volumes.Service) error { return v.Delete(ctx, r.Name) }},
			end: func() error {
				if held := n.Held(r.Name); held != 0 {
					return fmt.Errorf("the node still holds %d", held)
				}
				return controllertest.Gone(controllertest.Volume(t, c.Environment, r.Name))
			},
		}
	},
}

func createdOn(r volumes.Request, n *controllertest.Node) call {
	return func(ctx context.Context, v *volumes.Service) error {
		got, err := v.Create(ctx, r)
		if err == nil && (len(got.Nodes) != 1 || got.Nodes[0] != n.Name) {
			return fmt.Errorf("created on %v", got.Nodes)
		}
		return err
	}
}

func refused(r volumes.Request) call {
	return func(ctx context.Context, v *volumes.Service) error {
		if _, err := v.Create(ctx, r); !errors.Is(err, volumes.ErrUnplaceable) {
			return fmt.Errorf("want a refusal, got: %w", err)
		}
		return nil
	}
}

func expandedTo(id string, bytes int64) call {
	return func(ctx context.Context, v *volumes.Service) error {
		got, err := v.Expand(ctx, id, volumes.Size{Required: bytes})
		if err == nil && got.Capacity != bytes {
			return fmt.Errorf("expanded to %d", got.Capacity)
		}
		return err
	}
}

func tooLarge(id string, bytes int64) call {
	return func(ctx context.Context, v *volumes.Service) error {
		if _, err := v.Expand(ctx, id, volumes.Size{Required: bytes}); !errors.Is(err, volumes.ErrOutOfRange) {
			return fmt.Errorf("want a refusal, got: %w", err)
		}
		return nil
	}
}

// heldBy is the end in which one node holds the volume and no other has a trace of it.
func heldBy(t *testing.T, c *cluster, id string, n *controllertest.Node, bytes int64, others ...*controllertest.Node) func() error {
	return func() error {
		v := controllertest.Volume(t, c.Environment, id)
		if err := onlyOn(n)(v); err != nil {
			return err
		}
		if v.Spec.Capacity.Value() != bytes || len(v.Finalizers) != 1 || v.Finalizers[0] != v1alpha1.VolumeFinalizer {
			return fmt.Errorf("capacity %s, finalizers %v", v.Spec.Capacity.String(), v.Finalizers)
		}
		if held := n.Held(id); held != bytes {
			return fmt.Errorf("node %s holds %d, want %d", n.Name, held, bytes)
		}
		for _, other := range others {
			if held := other.Held(id); held != 0 {
				return fmt.Errorf("node %s holds %d, want nothing", other.Name, held)
			}
		}
		return nil
	}
}
