package notice

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
)

const (
	// fresh is how long after its first report an orphan is news. The API server
	// keeps events for an hour by default; an older orphan is in the list of orphans.
	fresh = time.Hour
	// ahead is how long before its deadline an orphan is told of once more.
	ahead = 24 * time.Hour
)

// The reasons of events.
const (
	ReasonFound    = "OrphanFound"
	ReasonExpiring = "OrphanExpiring"
)

// Notice is the decision to publish one event about a StorageNode.
type Notice struct {
	decide.Decision
	// Name of the event: equal events have equal names.
	Name string
	// Type of the event: Normal or Warning.
	Type   string
	Action string
}

func tell(name, kind, action, reason, message string) Notice {
	return Notice{Decision: decide.Decision{Verb: decide.Tell, Reason: reason, Message: message}, Name: name, Type: kind, Action: action}
}

// Due returns the notices that are due for a report, and how long it is until there
// are more; 0 if there will be none.
func Due(n *v1alpha1.StorageNode, now time.Time) (notices []Notice, next time.Duration) {
	for _, p := range n.Status.Pools {
		for _, i := range p.Inventory {
			if i.Orphan == nil {
				continue
			}
			due, wait := dueOf(n.Name, p.Name, i, now)
			notices = append(notices, due...)
			if wait > 0 && (next == 0 || wait < next) {
				next = wait
			}
		}
	}
	return append(notices, poolNotices(n, now)...), next
}

// nameOf names an event by its content.
func nameOf(kind, format string, content ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, content...))
	return "berth-" + kind + "-" + hex.EncodeToString(sum[:16])
}

func dueOf(node, pool string, i v1alpha1.InventoryItem, now time.Time) (notices []Notice, next time.Duration) {
	o, name := i.Orphan, i.Volume+i.Snapshot
	say := func(reason, message string) {
		event := nameOf("orphan", "%s/%s/%s/%s/%d", reason, node, pool, name, o.Since.Unix())
		notices = append(notices, tell(event, corev1.EventTypeWarning, "Kept", reason, message))
	}
	if now.Sub(o.Since.Time) < fresh {
		say(ReasonFound, fmt.Sprintf("%s in pool %s (%s) is kept: %s", name, pool, o.Size.String(), o.Message))
	}
	if o.Deadline == nil {
		return notices, 0
	}
	switch left := o.Deadline.Sub(now); {
	case left > ahead:
		next = left - ahead
	case left > 0:
		say(ReasonExpiring, fmt.Sprintf("%s in pool %s (%s) is deleted at %s unless it is adopted: kubectl berth adopt %s %s",
			name, pool, o.Size.String(), o.Deadline.UTC().Format(time.RFC3339), node, name))
	}
	return notices, next
}
