package memory

import "context"

// Operation names a call that a Disturbance may disturb.
type Operation string

// The operations of a provisioner.
const (
	Report Operation = "Report"
	Create Operation = "Create"
	Get    Operation = "Get"
	Expand Operation = "Expand"
	Format Operation = "Format"
	Delete Operation = "Delete"
	Ensure Operation = "Ensure"

	Snapshot       Operation = "Snapshot"
	GetSnapshot    Operation = "GetSnapshot"
	DeleteSnapshot Operation = "DeleteSnapshot"
)

// Disturbance adds latency and faults. It is called concurrently.
type Disturbance interface {
	// Before runs before an operation looks at the pools; id is empty for Report. It
	// may block, and its error fails the operation with nothing changed. For
	// operations that change something ctx does not end.
	Before(ctx context.Context, op Operation, id string) error

	// After runs when the operation is done. Its error replaces the result: the
	// change was made and the answer lost.
	After(ctx context.Context, op Operation, id string) error
}

type calm struct{}

func (calm) Before(context.Context, Operation, string) error { return nil }
func (calm) After(context.Context, Operation, string) error  { return nil }
