package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/schedule"
)

// Write prints the report about subject ("pod shop/web") as plain text.
func (r Report) Write(to io.Writer, subject string) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	switch v := r.Volumes; {
	case v == nil:
		fmt.Fprintf(w, "%s has no volumes of Berth's.\n", subject)
	default:
		writeHolders(w, v)
		if v.Unready != "" {
			fmt.Fprintf(w, "%s cannot be placed anywhere now: %s.\n", subject, plain.Line(v.Unready))
		}
		if len(v.Wanted) > 0 {
			r.writeWanted(w, subject)
			r.writeNodes(w)
		}
	}
	return w.Flush()
}

func writeHolders(w io.Writer, v *schedule.PodVolumes) {
	for _, h := range v.Holders {
		fmt.Fprintf(w, "Volume %s is on node %s (%s).\n", h.Volume, h.Node, standings[h.Standing])
	}
}

var standings = map[schedule.Standing]string{schedule.Unfit: "cannot be used now", schedule.Standby: "ready", schedule.Primary: "in use"}

func (r Report) writeWanted(w io.Writer, subject string) {
	fmt.Fprintf(w, "%s wants room for:\n", subject)
	fmt.Fprintln(w, "  VOLUME\tCLASS\tSIZE\tNODE CHOSEN")
	for _, wanted := range r.Volumes.Wanted {
		chosen := "-"
		if wanted.Claim != nil && wanted.Claim.Annotations[schedule.SelectedNode] != "" {
			chosen = wanted.Claim.Annotations[schedule.SelectedNode]
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", r.name(wanted.Demand.Owner), plain.Line(wanted.Demand.Class), quantity.Bytes(wanted.Demand.Bytes), plain.Line(chosen))
	}
	fmt.Fprintln(w)
}

// name returns the name of a demand for people.
func (r Report) name(o ledger.Owner) string {
	for _, wanted := range r.Volumes.Wanted {
		if wanted.Demand.Owner == o && wanted.Claim != nil {
			return "claim " + wanted.Claim.Name
		}
	}
	return "inline " + o.Inline
}

func (r Report) writeNodes(w io.Writer) {
	if len(r.Nodes) == 0 {
		fmt.Fprintf(w, "No node has a pool for it (%d nodes report other pools).\n", r.Unused)
		return
	}
	fmt.Fprintln(w, "NODE\tVOLUME\tPOOL\tTOTAL\tFOREIGN\tUSED\tFREE\tNEEDS\tANSWER")
	for _, node := range r.Nodes {
		for _, d := range node.Demands {
			for _, p := range d.Pools {
				if p.Reason != ledger.NotServed {
					fmt.Fprintf(w, "%s\t%s\t%s\n", node.Node, r.name(d.Demand.Owner), figures(p))
				}
			}
		}
	}
	fmt.Fprintln(w)
	for _, node := range r.Nodes {
		fmt.Fprintf(w, "%s: %s\n", node.Node, plain.Line(r.answer(node)))
	}
	if r.Unused > 0 {
		fmt.Fprintf(w, "%d more nodes have no pool of the class.\n", r.Unused)
	}
}

func figures(p ledger.PoolExplanation) string {
	size := func(n int64) string { return quantity.Bytes(max(n, 0)) }
	return strings.Join([]string{p.Pool, size(p.Total), size(p.Foreign), size(p.Used), size(p.Free), size(p.Need), p.Reason.String()}, "\t")
}

// answer sums up the answer of a node.
func (r Report) answer(n Node) string {
	switch {
	case n.Away != "":
		return "takes nothing new: " + n.Away
	case !n.Verdict.Fits():
		return "does not fit: " + cmp.Or(r.Volumes.Why(n.Verdict), n.Message(quantity.Bytes))
	}
	var chosen []string
	for _, choice := range n.Choices {
		chosen = append(chosen, fmt.Sprintf("%s in %s", r.name(choice.Owner), choice.Pool))
	}
	return "fits, " + strings.Join(chosen, ", ")
}
