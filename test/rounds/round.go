package rounds

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"berth.dev/berth/test/scrape"
)

// Round is what happened in one round. Nothing is left out of it because it went badly.
type Round struct {
	Seed   uint64 `json:"seed"`
	Number int    `json:"number"`
	// Fault is the name of the fault, Seconds how long it lasted if the dice say so.
	Fault   string  `json:"fault"`
	Seconds float64 `json:"seconds,omitempty"`
	// Victim is the node that wrote.
	Victim string `json:"victim"`
	// Moved tells whether another node, or another boot or pod of the same one, wrote in the end.
	Moved bool `json:"moved"`
	// Rebooted tells whether the victim booted.
	Rebooted bool `json:"rebooted"`
	// Steps are in the order in which they were reached.
	Steps []Step `json:"steps,omitempty"`
	// Gap is the longest time between two acknowledgements, in seconds on the clock of this machine.
	Gap float64 `json:"gap"`
	// Back is after how many seconds from the end of the fault all nodes could take over again.
	Back float64 `json:"back,omitempty"`
	// Acknowledged and Records are those since the disk was made.
	Acknowledged int   `json:"acknowledged"`
	Records      int64 `json:"records"`
	// Changes are the requests that changed something, from the fault to the next writer's first write, by resource;
	// those that the API server refused are under the resource's name and Refused. They are counted if all requests
	// are of this cluster alone.
	Changes scrape.Counts `json:"changes,omitempty"`
	// Harm is what the disk shows that must never be.
	Harm []string `json:"harm,omitempty"`
	// Failed says why the round failed, if it did.
	Failed string `json:"failed,omitempty"`
}

// Step is a station of a failover.
type Step struct {
	Name string `json:"name"`
	// After is how many seconds after the fault it was reached.
	After float64 `json:"after"`
}

// Planned is the name of a round in which nothing is lost: the node is cordoned, and its pod is evicted.
const Planned = "planned move"

// The steps of a failover, in their order. A planned move has Released and no Suspected to Fenced. Suspected, Shut, Ended and Staged are noted where all processes are of
// this machine.
const (
	Suspected = "a controller suspects the node"
	Asked     = "a standby is asked to shut the node out"
	Shut      = "the standby says that the disk refuses the node"
	Fenced    = "the node is fenced: it provably writes no more"
	Released  = "the node has let go of the volume"
	Ended     = "its pod has ended"
	Bound     = "its pod has ended, and the next is bound"
	Promoted  = "that node's attachment is the primary"
	Staged    = "the volume is staged there"
	Runs      = "the pod runs"
	Written   = "a write is acknowledged"
)

var order = []string{Suspected, Asked, Shut, Fenced, Released, Ended, Bound, Promoted, Staged, Runs, Written}

// Read reads lines.
func Read(from io.Reader) (all []Round, err error) {
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		var r Round
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

// Append adds a line of JSON to a file.
func Append(path string, line any) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // results for everyone
	if err != nil {
		return fmt.Errorf("opening the file of results: %w", err)
	}
	return errors.Join(json.NewEncoder(f).Encode(line), f.Close())
}

// Until waits for a state that no object tells. The error says what did not come.
func Until(ctx context.Context, limit time.Duration, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	looks := time.NewTicker(100 * time.Millisecond)
	defer looks.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not come to this within %s: %s", limit, what)
		case <-looks.C:
		}
	}
	return nil
}
