package report

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// beat is how often the Lease is renewed.
	beat = 10 * time.Second
	// lease is how long the controller takes a silent agent for alive.
	lease = 40 * time.Second
)

// Heartbeat renews the Lease that says that the node's agent is alive. It says
// nothing of the node's pools, and its end proves nothing about their data.
type Heartbeat struct {
	objects *Objects
	clock   clock.WithTicker
	log     logr.Logger
}

// NewHeartbeat returns a heartbeat that beats once Start is called.
func NewHeartbeat(o *Objects, c clock.WithTicker, log logr.Logger) *Heartbeat {
	return &Heartbeat{objects: o, clock: c, log: log}
}

// Start renews the Lease until the context ends. It does not repeat a beat that
// failed: the next one comes soon.
func (h *Heartbeat) Start(ctx context.Context) error {
	ticker := h.clock.NewTicker(beat)
	defer ticker.Stop()
	for {
		if err := h.objects.renew(ctx, h.clock.Now()); err != nil && ctx.Err() == nil {
			h.log.Error(err, "renewing the agent's lease failed")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (o *Objects) renew(ctx context.Context, now time.Time) error {
	node, err := o.self(ctx)
	if err != nil || node == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	body := applycoordination.Lease(v1alpha1.AgentLeasePrefix+o.node, o.namespace).
		WithOwnerReferences(applymeta.OwnerReference().
			WithAPIVersion(corev1.SchemeGroupVersion.String()).WithKind("Node").WithName(node.Name).WithUID(node.UID)).
		WithSpec(applycoordination.LeaseSpec().
			WithHolderIdentity(o.node).
			WithLeaseDurationSeconds(int32(lease / time.Second)).
			WithRenewTime(metav1.NewMicroTime(now)))
	return o.client.Apply(ctx, body, o.owner, client.ForceOwnership)
}
