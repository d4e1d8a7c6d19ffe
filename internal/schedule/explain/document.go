package explain

import (
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// Document is a Report for programs. Its fields do not change their meaning.
type Document struct {
	// Subject is the pod or the claim, as "pod shop/web".
	Subject string `json:"subject"`
	// Volumes that want room; empty if the subject has no volumes of Berth's, or all are made.
	Volumes []WantedVolume `json:"volumes"`
	// Holders are the volumes that are made, with the nodes that have them.
	Holders []Holder `json:"holders"`
	// Unready is empty, or says why the subject can be placed nowhere now.
	Unready string `json:"unready,omitempty"`
	// Nodes that serve a class of the volumes, those that fit first.
	Nodes []NodeAnswer `json:"nodes"`
	// OtherNodes is the number of nodes that have no pool of the classes.
	OtherNodes int `json:"otherNodes"`
}

// WantedVolume is a claim, or an inline volume of a pod, that wants room.
type WantedVolume struct {
	// Name as in the text: "claim data" or "inline scratch".
	Name  string `json:"name"`
	Class string `json:"class"`
	// Bytes that it wants.
	Bytes int64 `json:"bytes"`
	// ChosenNode is the node that a scheduler has chosen; empty for none.
	ChosenNode string `json:"chosenNode,omitempty"`
}

// Holder is a volume that is made, on one of its nodes.
type Holder struct {
	Volume   string `json:"volume"`
	Node     string `json:"node"`
	Standing string `json:"standing"`
}

// NodeAnswer is the answer of a node.
type NodeAnswer struct {
	Node string `json:"node"`
	Fits bool   `json:"fits"`
	// Answer in words, and Pools with the figures that it follows from.
	Answer string       `json:"answer"`
	Pools  []PoolAnswer `json:"pools"`
}

// PoolAnswer says how a pool answers for a volume. Figures are bytes.
type PoolAnswer struct {
	Volume  string `json:"volume"`
	Pool    string `json:"pool"`
	Total   int64  `json:"total"`
	Foreign int64  `json:"foreign"`
	Used    int64  `json:"used"`
	Free    int64  `json:"free"`
	Needs   int64  `json:"needs"`
	Answer  string `json:"answer"`
}

// Document returns the report about a subject for programs.
func (r Report) Document(subject string) Document {
	d := Document{Subject: subject, Volumes: []WantedVolume{}, Holders: []Holder{}, Nodes: []NodeAnswer{}, OtherNodes: r.Unused}
	if r.Volumes == nil {
		return d
	}
	d.Unready = r.Volumes.Unready
	for _, h := range r.Volumes.Holders {
		d.Holders = append(d.Holders, Holder{Volume: h.Volume, Node: h.Node, Standing: standings[h.Standing]})
	}
	for _, w := range r.Volumes.Wanted {
		next := WantedVolume{Name: r.name(w.Demand.Owner), Class: w.Demand.Class, Bytes: w.Demand.Bytes}
		if w.Claim != nil {
			next.ChosenNode = w.Claim.Annotations[schedule.SelectedNode]
		}
		d.Volumes = append(d.Volumes, next)
	}
	for _, n := range r.Nodes {
		next := NodeAnswer{Node: n.Node, Fits: n.Away == "" && n.Verdict.Fits(), Answer: r.answer(n), Pools: []PoolAnswer{}}
		for _, demand := range n.Demands {
			for _, p := range demand.Pools {
				if p.Reason != ledger.NotServed {
					next.Pools = append(next.Pools, PoolAnswer{
						Volume: r.name(demand.Demand.Owner), Pool: p.Pool, Total: max(p.Total, 0), Foreign: max(p.Foreign, 0),
						Used: max(p.Used, 0), Free: max(p.Free, 0), Needs: max(p.Need, 0), Answer: p.Reason.String(),
					})
				}
			}
		}
		d.Nodes = append(d.Nodes, next)
	}
	return d
}
