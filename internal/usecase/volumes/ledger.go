package volumes

import "berth.dev/berth/internal/ledger"

// Ledger knows which volumes fit where. It must see each Volume before the Watchers
// do: then its answers to a call include the state that the call has seen.
type Ledger interface {
	Request(options ledger.RequestOptions, demands ...ledger.Demand) (*ledger.Request, ledger.Verdict)
	Node(name string) *ledger.Node
	NodeNames() []string
	Reserve(node string, r *ledger.Request) ([]ledger.Choice, ledger.Verdict)
	Unreserve(podUID, node string)
	Held(o ledger.Owner, node string) (pool string, held bool)
	Orphan(o ledger.Owner) (node, pool string, found bool)
	Grant(volume string, bytes int64) ledger.Obstacle
	Room(node, class string) ledger.Room
}
