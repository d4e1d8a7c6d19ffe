//go:build platform

package takeover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/discovery"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/rounds"
	"berth.dev/berth/test/scrape"
)

// atRest is how long requests are counted while nothing happens: several renewals of each Lease.
const atRest = 2 * time.Minute

// changing are the verbs by which a request changes something.
var changing = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// changes are the requests that have changed something since the API server began, by resource, and those that were
// to and that it refused. Its own metrics count them.
func (p *players) changes(ctx context.Context) (scrape.Counts, error) {
	d, err := discovery.NewDiscoveryClientForConfig(p.env.Config)
	if err != nil {
		return nil, err
	}
	raw, err := d.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	from, err := scrape.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the API server's metrics: %w", err)
	}
	return from.Sum("apiserver_request_total", func(of map[string]string) string {
		switch {
		case !slices.Contains(changing, of["verb"]):
			return ""
		case !strings.HasPrefix(of["code"], "2"):
			return of["resource"] + rounds.Refused
		}
		return of["resource"]
	}), nil
}

// seeLease counts the renewals of each Lease, which the server's metrics do not tell apart.
func (p *players) seeLease(_ context.Context, o any) {
	if l, is := o.(*coordinationv1.Lease); is {
		p.renewals[l.Namespace+"/"+l.Name]++
	}
}

// rests counts what the cluster changes while nothing happens in it. open is the node with an open epoch, or nil.
func (p *players) rests(ctx context.Context, open *node) error {
	counted := rounds.Requests{Nodes: len(p.nodes), Seconds: atRest.Seconds()}
	before, err := p.changes(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.renewals = map[string]int{}
	p.mu.Unlock()
	over := time.NewTimer(atRest)
	defer over.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-over.C:
	}
	after, err := p.changes(ctx)
	if err != nil {
		return err
	}
	counted.Changes = after.Since(before)
	p.mu.Lock()
	counted.Leases = maps.Clone(p.renewals)
	p.mu.Unlock()
	if open != nil {
		counted.Open = v1alpha1.GuardLeasePrefix + open.name
	}
	return rounds.Append(*requests, counted)
}
