package rounds

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/figures"
	"berth.dev/berth/test/scrape"
)

// Refused follows a resource's name in the count of requests that changed nothing.
const Refused = ", refused"

// Requests are those by which a cluster at rest has changed something in its API server.
type Requests struct {
	// Nodes of the cluster.
	Nodes int `json:"nodes"`
	// Open is the Lease of the guard with an open epoch, if there is one.
	Open string `json:"open,omitempty"`
	// Seconds in which they were counted.
	Seconds float64 `json:"seconds"`
	// Changes by resource, and the renewals of each Lease among them, by namespace and name.
	Changes scrape.Counts `json:"changes"`
	Leases  scrape.Counts `json:"leases"`
}

// ReadRequests reads lines.
func ReadRequests(from io.Reader) (all []Requests, err error) {
	for lines := json.NewDecoder(from); ; {
		var r Requests
		switch err := lines.Decode(&r); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("reading counts of requests: %w", err)
		}
		all = append(all, r)
	}
}

// perFailover is a row for each resource that a failover changes. Leases are renewed at rest, too.
func perFailover(all []Round) *figures.Table {
	names := map[string]bool{}
	counted := slices.DeleteFunc(slices.Clone(all), func(r Round) bool { return len(r.Changes) == 0 })
	for i := range counted {
		for name := range counted[i].Changes {
			names[name] = name != "leases"
		}
	}
	t := &figures.Table{Head: []string{"requests to", "rounds", "least", "p50", "most"}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		n := make([]int, len(counted))
		for i := range counted {
			n[i] = counted[i].Changes[name]
		}
		slices.Sort(n)
		t.Add(name, strconv.Itoa(len(n)), strconv.Itoa(n[0]), strconv.Itoa(n[(len(n)-1)/2]), strconv.Itoa(n[len(n)-1]))
	}
	return t
}

// atRest is what a hundred nodes would write each second: a Lease of each node a hundred times, and what the
// cluster writes as a whole once.
func atRest(all []Requests) *figures.Table {
	t := &figures.Table{Head: []string{"100 nodes, in a second", "guards", "agents", "controllers", "all"}}
	for _, row := range []struct {
		name string
		open bool
	}{{"no epoch is open", false}, {"each node has an open epoch", true}} {
		var guards, agents, whole []float64
		for i := range all {
			r := &all[i]
			rest := float64(r.Changes.Total("") - r.Changes["leases"])
			for lease, n := range r.Leases {
				switch name := lease[strings.LastIndex(lease, "/")+1:]; {
				case strings.HasPrefix(name, v1alpha1.GuardLeasePrefix) && (name == r.Open) == row.open:
					guards = append(guards, 100*float64(n)/r.Seconds)
				case strings.HasPrefix(name, v1alpha1.AgentLeasePrefix):
					agents = append(agents, 100*float64(n)/r.Seconds)
				case strings.HasSuffix(name, "-controller"):
					rest += float64(n)
				}
			}
			whole = append(whole, rest/r.Seconds)
		}
		g, a, w := figures.Median(guards), figures.Median(agents), figures.Median(whole)
		t.Add(row.name, figures.Digits(g), figures.Digits(a), figures.Digits(w), figures.Digits(g+a+w))
	}
	return t
}
