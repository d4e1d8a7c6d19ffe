package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// steps records the steps of the demonstration and how long each took.
type steps struct {
	out   io.Writer
	clock func() time.Time
	done  []step
}

type step struct {
	name string
	took time.Duration
}

// do runs one step, shows its name while it works, and records its time.
func (s *steps) do(name string, work func() error) error {
	fmt.Fprintf(s.out, "==> %s\n", name)
	start := s.clock()
	if err := work(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.done = append(s.done, step{name, s.clock().Sub(start)})
	return nil
}

// table prints the recorded steps.
func (s *steps) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	for _, d := range s.done {
		fmt.Fprintf(w, "%.2f s\t  %s\n", d.took.Seconds(), d.name)
	}
}
