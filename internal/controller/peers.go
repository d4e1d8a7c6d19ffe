package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/certificates"
	"berth.dev/berth/internal/peer"
	"berth.dev/berth/internal/peer/address"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

// Nodes are how the process knows the nodes that it asks, and lets them know each other.
type Nodes struct {
	// Installation is the name that the objects of the installation begin with. If it is empty, nodes get no
	// certificates and are not asked.
	Installation string
	// Witness is the name of this process among those that say which node lives.
	Witness string
	// Address replaces the address that a node's agent has announced. For tests.
	Address func(ctx context.Context, node string) (string, error)
}

// addNodes signs the certificates of nodes and, if the driver has volumes with epochs, asks nodes: about their
// copies, and whether they live.
func addNodes(ctx context.Context, m ctrl.Manager, o *Options, shown prometheus.Registerer) error {
	if o.Nodes.Installation == "" {
		return nil
	}
	keeper := &certificates.Keeper{
		Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Name: o.Nodes.Installation,
		Instance: o.Driver.Controllers, Clock: o.Clock, Random: rand.Reader, Log: o.Log.WithName("authority"),
	}
	signer := &certificates.Signer{Client: m.GetClient(), Keeper: keeper, Users: certificates.Users(o.Namespace, o.Nodes.Installation)}
	if err := errors.Join(signer.SetupWithManager(m), shown.Register(keeper)); err != nil {
		return err
	}
	if !o.Driver.Epochs() {
		return nil
	}
	clients, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for certificates: %w", err)
	}
	own, err := issue.NewOwn(ctx, cert.Controllers, clients, issue.Memory{}, keeper.Roots)
	if err != nil {
		return fmt.Errorf("getting a certificate: %w", err)
	}
	leases := func(prefix string) func(context.Context, string) (string, error) {
		return address.Leases{Client: m.GetClient(), Namespace: o.Namespace, Prefix: prefix}.Address
	}
	find := o.Nodes.Address
	if find == nil {
		find = leases(v1alpha1.AgentLeasePrefix)
	}
	identity := cert.Identity{Node: cert.Controllers, Source: own, Now: o.Clock.Now}
	asks := peer.NewClient(identity, find, o.Log.WithName("peers"))
	guards := peer.NewClient(identity, leases(v1alpha1.GuardLeasePrefix), o.Log.WithName("guards"))
	beats := &peer.Beats{Name: o.Nodes.Witness, Client: asks, Guards: guards, Clock: o.Clock}
	stirred := make(chan struct{}, 1)
	beats.Stirred = func() { kick(stirred) }
	o.Peers, o.Witnesses, o.Stirred = beats, beats, stirred
	follow, err := newFollower(ctx, m, beats)
	if err != nil {
		return err
	}
	return errors.Join(
		m.Add(everywhere(func(ctx context.Context) error {
			own.Run(ctx, o.Clock)
			return nil
		})),
		m.Add(everywhere(func(ctx context.Context) error {
			defer asks.Close()
			defer guards.Close()
			return follow(ctx)
		})),
	)
}

// newFollower returns what follows the storage nodes as they come and go, until its context ends.
func newFollower(ctx context.Context, m ctrl.Manager, beats *peer.Beats) (func(context.Context) error, error) {
	informer, err := m.GetCache().GetInformer(ctx, &v1alpha1.StorageNode{})
	if err != nil {
		return nil, fmt.Errorf("watching storage nodes: %w", err)
	}
	changed := make(chan struct{}, 1)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { kick(changed) },
		DeleteFunc: func(any) { kick(changed) },
	})
	if err != nil {
		return nil, fmt.Errorf("listening to storage nodes: %w", err)
	}
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
			var list v1alpha1.StorageNodeList
			if err := m.GetClient().List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
				return nil //nolint:nilerr // the cache has ended
			}
			names := make([]string, 0, len(list.Items))
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			beats.Follow(ctx, names)
		}
	}, nil
}

// kick says that something has changed, unless that is said already.
func kick(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}
