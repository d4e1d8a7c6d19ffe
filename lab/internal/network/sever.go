package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/process"
)

// Part is a part of the network that a node can lose while it keeps the others.
type Part string

// The parts.
const (
	API   Part = "api"   // the control plane, both ways
	Peers Part = "peers" // all other nodes and their pods
	SAN   Part = "san"   // the storage target
)

// Parts are all parts.
var Parts = []Part{API, Peers, SAN}

// Validate reports a part that does not exist.
func (p Part) Validate() error {
	if !slices.Contains(Parts, p) {
		return fmt.Errorf("part of the network %q: use api, peers or san", p)
	}
	return nil
}

// filterTable is the table in the lab's namespace. It has one set for each part, with the
// ports of the nodes that have lost the part. The sets are the only record: what they
// contain is what the kernel does.
const filterTable = "berth_lab"

// ruleset makes the table complete. It filters at the bridge, by port: so a fault also holds
// for a node's pods. It drops only IPv4: neighbours still find each other, as behind a
// router that fails.
func ruleset() string {
	addresses := map[Part]string{
		API:   fmt.Sprintf("{ %s, %s }", Gateway, Services),
		Peers: fmt.Sprintf("{ 10.77.0.10-10.77.0.%d, %s }", 9+MaxNodes, Pods),
		SAN:   SANAddress.String(),
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table bridge %s {\n", filterTable)
	for _, p := range Parts {
		fmt.Fprintf(&b, "  set %s { type ifname; }\n", p)
	}
	for _, hook := range []string{"input", "output", "forward"} {
		fmt.Fprintf(&b, "  chain %[1]s {\n    type filter hook %[1]s priority 0; policy accept;\n", hook)
		for _, p := range Parts {
			if hook != "output" { // a packet of this machine comes in by no port
				fmt.Fprintf(&b, "    iifname @%s ip daddr %s drop\n", p, addresses[p])
			}
			if hook != "input" {
				fmt.Fprintf(&b, "    oifname @%s ip saddr %s drop\n", p, addresses[p])
			}
		}
		b.WriteString("  }\n")
	}
	return b.String() + "}\n"
}

// Sever takes a part of the network away from a node. Packets are lost silently, and
// connections stay as they are on both ends.
func (n *Network) Sever(ctx context.Context, node string, part Part) error {
	if err := part.Validate(); err != nil {
		return err
	}
	severed, err := n.Severed(ctx)
	if err != nil {
		return err
	}
	port := tapName(node)
	script := ""
	if severed == nil {
		script = ruleset()
	}
	script += fmt.Sprintf("add element bridge %s %s { %q }\n", filterTable, part, port)
	if err := n.filter(ctx, script); err != nil {
		return fmt.Errorf("cutting node %s from %s: %w", node, part, err)
	}
	return nil
}

// Restore undoes [Network.Sever]. Without a fault it does nothing.
func (n *Network) Restore(ctx context.Context, node string, part Part) error {
	if err := part.Validate(); err != nil {
		return err
	}
	severed, err := n.Severed(ctx)
	if err != nil || !slices.Contains(severed[tapName(node)], part) {
		return err
	}
	if err := n.filter(ctx, fmt.Sprintf("delete element bridge %s %s { %q }\n", filterTable, part, tapName(node))); err != nil {
		return fmt.Errorf("connecting node %s to %s: %w", node, part, err)
	}
	return nil
}

// Lost returns the parts that a node has lost, in the order of [Parts].
func (n *Network) Lost(ctx context.Context, node string) ([]Part, error) {
	severed, err := n.Severed(ctx)
	return severed[tapName(node)], err
}

// Severed returns the lost parts of each port, or nil if no part was ever severed. A
// machine without the filter's program has severed none.
func (n *Network) Severed(ctx context.Context) (map[string][]Part, error) {
	if _, err := process.Look(filterProgram); err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	out, err := process.Output(ctx, process.Command{
		Path: filterProgram, Args: []string{"--json", "list", "tables", "bridge"}, NetNS: n.path})
	if err == nil && strings.Contains(string(out), filterTable) {
		out, err = process.Output(ctx, process.Command{
			Path: filterProgram, Args: []string{"--json", "list", "table", "bridge", filterTable}, NetNS: n.path})
		if err == nil {
			return parseSevered(out)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the faults of the network: %w", err)
	}
	return nil, nil
}

// FilterPackages are the Debian packages that [Network.Sever] needs, by program. kube-proxy on a
// native node needs the same.
var FilterPackages = map[string]string{filterProgram: "nftables"}

const filterProgram = "nft"

func (n *Network) filter(ctx context.Context, script string) error {
	return process.Run(ctx, process.Command{
		Path: filterProgram, Args: []string{"--file", "-"}, Stdin: strings.NewReader(script), NetNS: n.path})
}

// parseSevered reads the sets of the table as nft writes them.
func parseSevered(data []byte) (map[string][]Part, error) {
	var list struct {
		Nftables []struct {
			Set *struct {
				Name string   `json:"name"`
				Elem []string `json:"elem"`
			} `json:"set"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, errors.Join(errors.New("reading the faults of the network"), err)
	}
	severed := map[string][]Part{}
	for _, part := range Parts {
		for _, entry := range list.Nftables {
			if entry.Set == nil || entry.Set.Name != string(part) {
				continue
			}
			for _, port := range entry.Set.Elem {
				severed[port] = append(severed[port], part)
			}
		}
	}
	return severed, nil
}
