package network

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Link is what a node's interface does to the packets that it sends. Packets that the node
// receives are not touched: a delay counts once in a round trip. The zero Link does nothing.
type Link struct {
	Delay  time.Duration `json:"delay,omitempty"`
	Jitter time.Duration `json:"jitter,omitempty"` // the delay varies by as much, up and down
	Loss   float64       `json:"loss,omitempty"`   // percent of the packets
}

// Validate reports what netem would refuse or silently change.
func (l Link) Validate() error {
	var errs []error
	const most = time.Minute
	if l.Delay < 0 || l.Delay > most {
		errs = append(errs, fmt.Errorf("delay %v: use 0 to %v", l.Delay, most))
	}
	if l.Jitter < 0 || l.Jitter > l.Delay {
		errs = append(errs, fmt.Errorf("jitter %v: use 0 to the delay, which is %v", l.Jitter, l.Delay))
	}
	if l.Loss < 0 || l.Loss > 100 {
		errs = append(errs, fmt.Errorf("loss of %v percent: use 0 to 100", l.Loss))
	}
	return errors.Join(errs...)
}

// Command returns the program, with its arguments, that gives an interface of the node it
// runs in this behaviour. The kernel of the node needs netem. A restart of the node ends it.
func (l Link) Command(device string) []string {
	if l == (Link{}) {
		// The first command makes sure that there is something to delete.
		return []string{"sh", "-c", `tc qdisc replace dev "$0" root netem && tc qdisc del dev "$0" root`, device}
	}
	args := []string{"tc", "qdisc", "replace", "dev", device, "root", "netem"}
	if l.Delay > 0 {
		args = append(args, "delay", microseconds(l.Delay))
	}
	if l.Jitter > 0 {
		args = append(args, microseconds(l.Jitter))
	}
	if l.Loss > 0 {
		args = append(args, "loss", fmt.Sprintf("%g%%", l.Loss))
	}
	return args
}

func microseconds(d time.Duration) string { return fmt.Sprintf("%dus", d.Microseconds()) }

// String returns the link for people, or nothing if it does nothing.
func (l Link) String() string {
	var parts []string
	if l.Delay > 0 {
		parts = append(parts, "delay "+l.Delay.String())
	}
	if l.Jitter > 0 {
		parts = append(parts, "jitter "+l.Jitter.String())
	}
	if l.Loss > 0 {
		parts = append(parts, fmt.Sprintf("loss %g%%", l.Loss))
	}
	return strings.Join(parts, " ")
}
