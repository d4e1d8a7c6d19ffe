package trial

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"berth.dev/berth/internal/quantity"
)

// Print writes the figures as a table for people.
func Print(out io.Writer, f Figures) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "STREAM\tBYTES\tON THE LINK\tTIME\tRATE")
	for _, l := range f.Legs {
		perSecond := float64(l.Raw) / max(l.Took.Seconds(), 0.001)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%s/s\n", l.Name, quantity.Rough(int64(l.Raw)), quantity.Rough(int64(l.Wire)), //nolint:gosec // bytes of a stream
			l.Took.Round(time.Millisecond), quantity.Rough(int64(perSecond)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s of data compared: all as written\n", quantity.Rough(f.Compared))
	return err
}
