package ledger

import (
	"fmt"
	"strings"
)

// Message says for people why the request does not fit on the node, with the
// figures of every pool that comes into question; empty when it fits. size prints
// bytes as people write them.
func (x Explanation) Message(size func(int64) string) string {
	switch x.Verdict.Reason {
	case Fits:
		return ""
	case NotTogether:
		return x.Verdict.Reason.Message() + x.together(size)
	case NoStandby:
		return x.Standbys.message(size)
	case SiblingsElsewhere:
		if x.Standbys != nil {
			return x.Verdict.Reason.Message() + ": " + strings.Join(x.Standbys.Found, ", ")
		}
		return x.Verdict.Reason.Message()
	case HeldElsewhere, SourceElsewhere, AgentTooOld:
		return x.Verdict.Reason.Message() // no pool of the node has more to say
	}
	for _, d := range x.Demands {
		if d.Demand.Owner == x.Verdict.Owner {
			if told := d.told(size); told != "" {
				return told
			}
		}
	}
	return x.Verdict.Reason.Message()
}

// told is the answer of the pools that serve the class.
func (d DemandExplanation) told(size func(int64) string) string {
	var told []string
	for _, p := range d.Pools {
		if p.Reason != Fits && p.Reason != NotServed {
			told = append(told, p.message(d.Demand.Bytes, size))
		}
	}
	return strings.Join(told, "; ")
}

func (p PoolExplanation) message(asked int64, size func(int64) string) string {
	if p.Reason == NoRoom {
		return fmt.Sprintf("pool %s has %s free, %s asked", p.Pool, size(max(p.Free, 0)), size(asked))
	}
	return fmt.Sprintf("pool %s: %s", p.Pool, p.Reason.Message())
}

// together lists the sizes asked for and the free space of each pool.
func (x Explanation) together(size func(int64) string) string {
	var asked, free []string
	seen := map[string]bool{}
	for _, d := range x.Demands {
		asked = append(asked, size(d.Demand.Bytes))
		for _, p := range d.Pools {
			if p.Reason == Fits && !seen[p.Pool] {
				seen[p.Pool] = true
				free = append(free, fmt.Sprintf("pool %s has %s free", p.Pool, size(max(p.Free, 0))))
			}
		}
	}
	return fmt.Sprintf(": %s; %s asked", strings.Join(free, ", "), strings.Join(asked, " + "))
}

// Message says for people why a volume cannot grow, without the node's name.
func (o Obstacle) Message(size func(int64) string) string {
	if o.Reason == NoRoom {
		return fmt.Sprintf("pool %s has %s free, %s more asked", o.Pool, size(max(o.Free, 0)), size(o.Need))
	}
	return o.Reason.Message()
}
