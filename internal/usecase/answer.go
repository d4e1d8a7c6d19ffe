package usecase

// State is how far a call is that waits for an object.
type State int

const (
	// Waiting: there is no answer yet.
	Waiting State = iota
	// Done: the call has succeeded.
	Done
	// Refused: this node cannot take it; another one may, or this one later.
	Refused
	// Failed: the call has failed.
	Failed
)

// Answer is what an object's status says to a call that waits for it: the state and, unless the
// call is done, the node that it is about. An answer without success has a class of error and the
// node's message.
type Answer struct {
	State   State
	Node    string
	Class   error
	Message string
}

// Err is nil unless the call was refused or has failed.
func (a Answer) Err() error {
	if a.Class == nil {
		return nil
	}
	return Fail(a.Class, "node %s: %s", a.Node, a.Message)
}
