package wish

import (
	"strings"
	"time"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

// Standing is how a wish stands on a node.
type Standing struct {
	// Pool, and Class that asks for it.
	Pool, Class string
	provision.Outcome
	// Last is the last change that this process made to the pool, and At its time; it has no
	// reason if there was none.
	Last provision.Outcome
	At   time.Time
}

// Met says whether all is as asked.
func (s Standing) Met() bool { return s.Reason.Met() || s.Reason.Done() }

// Stand returns how a wish stands after a step with this outcome or error. A wish that is refused
// has no step.
func (w Wish) Stand(o provision.Outcome, err error) Standing {
	if w.Verb == decide.Refuse {
		o = provision.Outcome{Reason: provision.Reason(w.Reason), Message: w.Message}
	}
	if err != nil {
		o = provision.Outcome{Reason: Failing, Message: err.Error()}
	}
	if w.lost && o.Reason == provision.PoolAwaitsDisks {
		o = gone(w.Pool.Name)
	}
	switch {
	case w.contested && o.Reason.Met():
		o.Reason = Contested
		o.Message += "; " + strings.Join(w.Remarks, "; ")
	case len(w.Remarks) > 0 && !o.Reason.Done():
		o.Message += "; " + strings.Join(w.Remarks, "; ")
	}
	return Standing{Pool: w.Pool.Name, Class: w.Class, Outcome: o}
}
