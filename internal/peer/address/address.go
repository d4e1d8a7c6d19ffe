package address

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// fresh is for how long an address is used without another look.
const fresh = 30 * time.Second

// Of returns the address that a Lease announces. What a node announces is that node's word: an address that no
// pod has is refused, so that a hostile node makes no process connect to its own machine or to its provider.
func Of(lease *coordinationv1.Lease) (string, error) {
	text, ok := lease.Annotations[v1alpha1.AddressAnnotation]
	if !ok {
		return "", fmt.Errorf("lease %s announces no address: the process is older, or answers no questions", lease.Name)
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return "", fmt.Errorf("lease %s announces %.64q, which is no address with a port", lease.Name, text)
	}
	if ip := at.Addr().Unmap(); !ip.IsGlobalUnicast() || at.Port() == 0 {
		return "", fmt.Errorf("lease %s announces %s, which is no address of a pod", lease.Name, at)
	}
	return at.String(), nil
}

// Leases finds addresses in the Leases of agents or of guards.
type Leases struct {
	Client client.Reader
	// Namespace that Berth is installed in.
	Namespace string
	// Prefix of the Leases' names: v1alpha1.AgentLeasePrefix or v1alpha1.GuardLeasePrefix.
	Prefix string
}

// Address returns the address of a node.
func (l Leases) Address(ctx context.Context, node string) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := l.Client.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: l.Prefix + node}, lease); err != nil {
		return "", err
	}
	return Of(lease)
}

// Announce writes the address of this process into its Lease, and nothing if it is there. A Lease that does not
// exist yet is an error: the process that renews it makes it.
func (l Leases) Announce(ctx context.Context, c client.Writer, node, address string) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = l.Namespace, l.Prefix+node
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AddressAnnotation: address}}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("announcing this node's address in lease %s: %w", lease.Name, err)
	}
	return nil
}

// Recent remembers addresses. One that cannot be read anew is used on: that the API server is away says nothing
// about the node.
type Recent struct {
	From  func(ctx context.Context, node string) (string, error)
	Clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]entry
}

type entry struct {
	address string
	at      time.Time
}

// Address returns the address of a node.
func (r *Recent) Address(ctx context.Context, node string) (string, error) {
	r.mu.Lock()
	old, known := r.known[node]
	r.mu.Unlock()
	now := r.Clock.Now()
	if known && now.Sub(old.at) < fresh {
		return old.address, nil
	}
	address, err := r.From(ctx, node)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case client.IgnoreNotFound(err) == nil && err != nil: // the node has gone
		delete(r.known, node)
		return "", err
	case err != nil && known:
		return old.address, nil
	case err != nil:
		return "", err
	}
	if r.known == nil {
		r.known = map[string]entry{}
	}
	r.known[node] = entry{address, now}
	return address, nil
}
