package shell

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/controller/oversight"
)

// mistake is one of a shell. None is the product.
type mistake int

const (
	none mistake = iota
	noFsync
	missedRelist
)

// agent returns the world of an agent with the mistake.
func (x mistake) agent(_ *process, w owner.World) owner.World { return w }

// client returns the client of a controller with the mistake, live its reader of the API server.
func (x mistake) client(_ *process, c client.Client) client.Client { return c }

func (x mistake) live(_ *process, live client.Reader, _ client.Reader) client.Reader { return live }

func (x mistake) leases(l oversight.Leases) oversight.Leases { return l }
