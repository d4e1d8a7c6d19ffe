package usecase

// Outcome is the answer of an object to a call that waits on it.
type Outcome int

const (
	// Waiting: there is no answer yet.
	Waiting Outcome = iota
	// Done: the call has succeeded.
	Done
	// Refused: this node cannot take it; another one may, or this one later.
	Refused
	// Failed: the call has failed.
	Failed
)

// Verdict is an outcome and, unless it is done, the node that it is about. An outcome
// without success has a class and the node's message.
type Verdict struct {
	Outcome Outcome
	Node    string
	Class   error
	Message string
}

// Err is nil unless the verdict is that the call was refused or has failed.
func (v Verdict) Err() error {
	if v.Class == nil {
		return nil
	}
	return Fail(v.Class, "node %s: %s", v.Node, v.Message)
}
