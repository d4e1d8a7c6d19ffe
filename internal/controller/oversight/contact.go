package oversight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/guard/sight"
)

// Leases lists and watches Leases at the API server. It has no cache: a cache hides that its contact
// broke.
type Leases interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
	Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error)
}

const (
	// reconnect is the pause before a contact that broke is made anew.
	reconnect = time.Second
	// renewing is how often an agent, or a guard, renews its Lease at least.
	renewing = 10 * time.Second
)

// errLost ends a contact because of a read, which has broken it.
var errLost = errors.New("a read of the API server failed")

// Contact is this process's contact with the API server, and what it has seen of the nodes since the
// contact began. It begins with a list of Leases and lasts as long as the watches that follow it without a
// gap, or until a read of the API server fails (Break). Nothing that was seen outlives it: nodes that look
// silent afterwards may have renewed all the time.
type Contact struct {
	Leases Leases
	// Namespace in which guards and agents renew their Leases.
	Namespace string
	Clock     clock.WithTicker
	Log       logr.Logger

	mu   sync.Mutex
	seen *seen // nil while there is no contact
	end  context.CancelFunc
}

// seen is what one contact brought.
type seen struct {
	began  time.Time
	sight  *sight.Sight
	guards map[string]bool
	agents map[string]heard
	// lost says since when this process has suspected a node.
	lost map[string]time.Time
	// kubelets are the Leases of suspects' kubelets, as questions have read them.
	kubelets map[string]heard
	told     map[string]trouble
	// stranded says since when this process has seen pods with a dead mount, by volume.
	stranded map[string]map[types.UID]time.Time
}

// heard is a renewal, as it said itself, and when this process first saw it by its own clock.
type heard struct {
	renewal string
	at      time.Time
}

// Start makes contact, again and again, until ctx ends.
func (c *Contact) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.hold(ctx)
		c.Break()
		if ctx.Err() == nil {
			c.Log.Info("contact with the API server ended; watching the nodes' leases begins anew", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(reconnect):
		}
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Contact) NeedLeaderElection() bool { return false }

// Break ends the present contact, if there is one.
func (c *Contact) Break() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
	if c.end != nil {
		c.end()
	}
}

// hold makes one contact and returns why it ended. An API server ends each watch after some minutes: the
// next one goes on from the last change, so that nothing is missed, and the contact lasts.
func (c *Contact) hold(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var list coordinationv1.LeaseList
	if err := c.Leases.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing leases: %w", err)
	}
	at := position{version: list.ResourceVersion, heard: c.Clock.Now()}
	changes, err := c.watch(ctx, at)
	if err != nil {
		return err
	}
	c.begin(list.Items, end)
	for {
		at, err = c.follow(ctx, changes, at)
		changes.Stop()
		if err != nil {
			return err
		}
		if changes, err = c.resume(ctx, at); err != nil {
			return err
		}
	}
}

// position is how far a contact has come: the version of the last change, and when the watch brought
// something for the last time.
type position struct {
	version string
	heard   time.Time
}

func (c *Contact) watch(ctx context.Context, from position) (watch.Interface, error) {
	changes, err := c.Leases.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(c.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from.version, AllowWatchBookmarks: true}})
	if err != nil {
		return nil, fmt.Errorf("watching leases: %w", err)
	}
	return changes, nil
}

// follow takes what a watch brings until it ends.
func (c *Contact) follow(ctx context.Context, changes watch.Interface, at position) (position, error) {
	for {
		select {
		case <-ctx.Done():
			return at, errLost
		case change, more := <-changes.ResultChan():
			if !more {
				return at, nil
			}
			version, err := c.see(ctx, change)
			if err != nil {
				return at, err
			}
			at = position{version, c.Clock.Now()}
		}
	}
}

// resume goes on from where a watch has ended. A connection that broke looks like a watch that ended, and
// what it did not bring makes nodes look silent. So the watch must have been alive a moment ago, and the
// next one must begin within the pause after which a contact would be made anew.
func (c *Contact) resume(ctx context.Context, from position) (watch.Interface, error) {
	if quiet := c.Clock.Since(from.heard); quiet > renewing {
		return nil, fmt.Errorf("the watch of leases ended, and had brought nothing for %s", quiet)
	}
	begun := make(chan struct{})
	defer close(begun)
	late := c.Clock.NewTimer(reconnect)
	go func() {
		defer late.Stop()
		select {
		case <-begun:
		case <-late.C():
			c.Break()
		}
	}()
	return c.watch(ctx, from)
}

func (c *Contact) begin(listed []coordinationv1.Lease, end context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	c.end = end
	c.seen = &seen{
		began: now, sight: sight.New(listed, now), guards: map[string]bool{}, agents: map[string]heard{},
		lost: map[string]time.Time{}, kubelets: map[string]heard{}, told: map[string]trouble{},
		stranded: map[string]map[types.UID]time.Time{},
	}
	for i := range listed {
		c.seen.note(&listed[i], now)
	}
}

// see takes a change that the watch brought, or a bookmark, and returns its version. The end of a Lease is
// no renewal, and Sight need not know of it: a question reads the suspect's Lease at the API server, and
// finds that it is gone.
func (c *Contact) see(ctx context.Context, change watch.Event) (version string, err error) {
	lease, is := change.Object.(*coordinationv1.Lease)
	if !is { // such as the Status that tells of an error
		return "", fmt.Errorf("the watch of leases ended with %v", change.Object)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || ctx.Err() != nil {
		return "", errLost
	}
	if change.Type == watch.Added || change.Type == watch.Modified {
		now := c.Clock.Now()
		c.seen.sight.See(lease, now)
		c.seen.note(lease, now)
	}
	return lease.ResourceVersion, nil
}

// note takes in whose Lease this is, and when its agent renewed it.
func (s *seen) note(lease *coordinationv1.Lease, now time.Time) {
	if node := nodeOf(lease.Name, v1alpha1.GuardLeasePrefix); node != "" {
		s.guards[node] = true
	}
	if node := nodeOf(lease.Name, v1alpha1.AgentLeasePrefix); node != "" {
		s.agents[node] = s.agents[node].next(renewal(lease), now)
	}
}

// next is the renewal that was seen now: the same one as before, or another.
func (h heard) next(renewal string, now time.Time) heard {
	if !h.at.IsZero() && h.renewal == renewal {
		return h
	}
	return heard{renewal, now}
}

// renewal identifies a renewal. An edit of a Lease is none.
func renewal(lease *coordinationv1.Lease) string {
	if lease.Spec.RenewTime == nil {
		return ""
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
}

func nodeOf(lease, prefix string) string {
	node, is := strings.CutPrefix(lease, prefix)
	if !is {
		return ""
	}
	return node
}
