package controllertest

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Requests records the requests of a process to the API server.
type Requests struct {
	mu   sync.Mutex
	list []string
}

// Count returns config with every request recorded.
func (r *Requests) Count(config *rest.Config) *rest.Config {
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.list = append(r.list, verb(request)+" "+request.URL.Path)
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return counted
}

// Reset forgets the recorded requests.
func (r *Requests) Reset() { r.take() }

// Take returns the requests since the last Reset or Take, as "VERB path".
func (r *Requests) Take() []string { return r.take() }

func (r *Requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// verb names the kind of a request. A GET of a collection is a list or a watch.
func verb(request *http.Request) string {
	if request.Method != http.MethodGet {
		return request.Method
	}
	switch {
	case request.URL.Query().Get("watch") != "":
		return "WATCH"
	case collection(request.URL.Path):
		return "LIST"
	default:
		return "GET"
	}
}

// collection says whether a path ends in a resource and not in an object's name.
func collection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	resources := []string{"volumes", "snapshots", "poolclasses", "luns", "storagenodes", "nodes", "persistentvolumes", "persistentvolumeclaims", "leases"}
	return slices.Contains(resources, parts[len(parts)-1])
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
