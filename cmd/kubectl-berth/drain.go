package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/failover"
	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/survey"
)

func newDrainCommand(m moving) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Move the shared disks that a node writes to their standbys, before the node is drained",
		Long: `Move the shared disks that a node writes to their standbys, before the node is
drained.

The node is cordoned. The command waits until each volume has a standby that is ready
where its pods may run, and only then evicts the pods that use the volumes: as
PodDisruptionBudgets allow it, and nothing is lost. It tells when the next node writes.
A disk that several nodes write waits for no standby: the others go on.
Pods that use no shared disk stay: kubectl drain is for them.

Without --yes the command says what would happen, and does nothing. kubectl uncordon
takes the node back.`,
		Example: "  # Say which volumes would go where; then do it.\n  kubectl berth drain node-3\n  kubectl berth drain node-3 --yes",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return m.drain(cmd, args[0]) },
	}
	m.flags(cmd)
	return cmd
}

// leaving is a volume that a node shall let go.
type leaving struct {
	failover.Move
	pods  []*corev1.Pod
	epoch uint64
	// writes: the node writes it now. Else pods that are bound there want it.
	writes bool
	told   int
	over   bool
}

func (m *moving) drain(cmd *cobra.Command, node string) error {
	c, cluster, _, err := m.look(cmd, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	volumes, err := leavingOf(cmd, c, cluster, node)
	if err != nil {
		return err
	}
	if !m.yes {
		return errors.Join(foretellDrain(cmd.OutOrStdout(), node, volumes), errUnconfirmed)
	}
	if err := failover.Cordon(cmd.Context(), c, node); err != nil {
		return err
	}
	say := teller(cmd.OutOrStdout())
	if err := say("node %s is cordoned", node); err != nil {
		return err
	}
	if err := m.empty(cmd, c, node, say); err != nil {
		return err
	}
	return say("node %s writes no shared disk any more. The rest of it: kubectl drain %s --ignore-daemonsets --delete-emptydir-data", node, node)
}

// empty moves volumes until a look at the cordoned node finds none. A pod may have come before the node was
// cordoned, and have its volume opened later.
func (m *moving) empty(cmd *cobra.Command, c client.Client, node string, say func(string, ...any) error) error {
	until := m.clock.Now().Add(m.patience)
	for first := true; ; first = false {
		_, cluster, _, err := m.look(cmd, io.Discard) // the first look has told its notes
		if err != nil {
			return err
		}
		volumes, err := leavingOf(cmd, c, cluster, node)
		if err != nil || len(volumes) == 0 {
			return err
		}
		if !first {
			if err := m.pause(cmd.Context()); err != nil {
				return err
			}
			if !m.clock.Now().Before(until) {
				return fmt.Errorf("pods on node %s still want %d volumes after %v. The node stays cordoned: repeat the command, or kubectl uncordon %s", node, len(volumes), m.patience, node)
			}
		}
		began := m.clock.Now() // what follows has a patience of its own
		if volumes, err = m.prepare(cmd, node, volumes, say); err != nil {
			return err
		}
		if err := m.move(cmd, c, node, volumes, say); err != nil {
			return err
		}
		until = until.Add(m.clock.Since(began))
	}
}

func teller(to io.Writer) func(format string, args ...any) error {
	return func(format string, args ...any) error {
		_, err := fmt.Fprintln(to, plain.Line(fmt.Sprintf(format, args...)))
		return err
	}
}

// leavingOf are the volumes that the node writes, or that pods want that are bound there, or the reason why the
// command does not move them.
func leavingOf(cmd *cobra.Command, c client.Client, cluster survey.Cluster, node string) ([]*leaving, error) {
	var nodes corev1.NodeList
	if err := c.List(cmd.Context(), &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == node }) {
		return nil, fmt.Errorf("there is no Node %s", node)
	}
	away, users, machines := cluster.Heartbeats.Away(node), cluster.Users(), cluster.Machines()
	var all []*leaving
	for i := range cluster.Volumes {
		v := &cluster.Volumes[i]
		if v.Status.Ownership == nil {
			continue
		}
		pods := slices.DeleteFunc(slices.Clone(users[v.Name]), func(p *corev1.Pod) bool { return p.Spec.NodeName != node })
		if len(pods) == 0 && !slices.Contains(v.Status.Ownership.Owners(), node) {
			continue
		}
		f, err := failover.FactsOf(v, machines)
		if err != nil {
			return nil, err
		}
		writes := slices.Contains(f.Record.Writing(), node)
		move := failover.MoveOf(f, node, nodes.Items, pods)
		pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }) // they are going
		switch names := failover.Unmanaged(pods); {
		case !writes && (len(move.Pods) == 0 || away != ""): // a node that is away begins to write nothing
			continue
		case len(names) > 0:
			return nil, fmt.Errorf("no controller makes these pods anew elsewhere: %s. End them yourself first", strings.Join(names, ", "))
		}
		all = append(all, &leaving{Move: move, pods: pods, epoch: f.Record.On(node).Epoch.Number, writes: writes})
	}
	if away != "" && len(all) > 0 {
		return nil, fmt.Errorf("node %s does not answer (%s), so its pods do not end by themselves: kubectl berth failover %s", node, away, all[0].shutOut(node))
	}
	return all, nil
}

// shutOut are the arguments with which a failover shuts the node out of the volume.
func (v *leaving) shutOut(node string) string {
	if len(v.Others) == 0 {
		return v.Volume
	}
	return v.Volume + " --from " + node
}

// where says where a volume would go.
func (v *leaving) where() string {
	switch {
	case v.Waits != "":
		return "would wait: " + v.Waits
	case len(v.Others) > 0:
		return "would be let go; these nodes go on writing: " + strings.Join(v.Others, ", ")
	case v.Shared:
		return "would be let go, and goes where its pods go"
	}
	return "would move to " + strings.Join(v.Targets, " or ")
}

func foretellDrain(to io.Writer, node string, volumes []*leaving) error {
	var s strings.Builder
	fmt.Fprintf(&s, "Node %s would be cordoned.\n", node)
	if len(volumes) == 0 {
		fmt.Fprintf(&s, "It writes no shared disk.\n")
	}
	for _, v := range volumes {
		fmt.Fprintf(&s, "Volume %s %s\n", v.Volume, plain.Line(v.where()))
		if len(v.Pods) > 0 {
			fmt.Fprintf(&s, "  then these pods would be evicted: %s\n", strings.Join(v.Pods, ", "))
		}
	}
	_, err := io.WriteString(to, s.String())
	return err
}

// prepare waits until each volume has somewhere to go. No pod is evicted before.
func (m *moving) prepare(cmd *cobra.Command, node string, volumes []*leaving, say func(string, ...any) error) ([]*leaving, error) {
	said, until := map[string]bool{}, m.clock.Now().Add(m.patience)
	for {
		var waits []string
		for _, v := range volumes {
			if v.Waits == "" || !v.writes && len(v.pods) == 0 { // no pod is to be evicted
				continue
			}
			line := fmt.Sprintf("volume %s waits: %s", v.Volume, v.Waits)
			waits = append(waits, line)
			if !said[line] {
				said[line] = true
				if err := say("%s", line); err != nil {
					return nil, err
				}
			}
		}
		if len(waits) == 0 {
			return volumes, nil
		}
		if !m.clock.Now().Before(until) {
			return nil, fmt.Errorf("%d volumes still wait after %v, and no pod that uses them was evicted. Node %s stays cordoned: repeat the command, or kubectl uncordon %s", len(waits), m.patience, node, node)
		}
		if err := m.pause(cmd.Context()); err != nil {
			return nil, err
		}
		c, cluster, _, err := m.look(cmd, io.Discard) // the first look has told its notes
		if err != nil {
			return nil, err
		}
		if volumes, err = leavingOf(cmd, c, cluster, node); err != nil {
			return nil, err
		}
	}
}

// move evicts the pods and tells what becomes of the volumes, until other nodes write all of them.
func (m *moving) move(cmd *cobra.Command, c client.Client, node string, volumes []*leaving, say func(string, ...any) error) error {
	until, held := m.clock.Now().Add(m.patience), map[string]bool{}
	for {
		left := 0
		for _, v := range volumes {
			if err := v.step(cmd, c, node, held, say); err != nil {
				return err
			}
			if !v.over {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if !m.clock.Now().Before(until) {
			return fmt.Errorf("%d volumes have not moved within %v: kubectl berth replicas says where they are. Repeat the command to go on", left, m.patience)
		}
		if err := m.wait(cmd.Context()); err != nil {
			return err
		}
	}
}

// step takes the next step of one volume. A volume that no pod uses is over when its node has let it go.
func (v *leaving) step(cmd *cobra.Command, c client.Client, node string, held map[string]bool, say func(string, ...any) error) error {
	for len(v.pods) > 0 {
		p := v.pods[0]
		name := p.Namespace + "/" + p.Name
		switch err := failover.Evict(cmd.Context(), c, p); {
		case errors.Is(err, failover.ErrBudget):
			if held[name] {
				return nil
			}
			held[name] = true
			return say("pod %s waits: a PodDisruptionBudget does not allow its eviction now", name)
		case err != nil:
			return err
		}
		v.pods = v.pods[1:]
		if err := say("pod %s is evicted", name); err != nil {
			return err
		}
	}
	if !v.writes { // the next look tells whether the node has begun to
		v.over = true
		return nil
	}
	o := &v1alpha1.Volume{}
	if err := c.Get(cmd.Context(), client.ObjectKey{Name: v.Volume}, o); err != nil {
		return fmt.Errorf("reading volume %s: %w", v.Volume, err)
	}
	r, err := record.From(o)
	if err != nil {
		return err
	}
	steps, over := failover.Moved(r, node, v.epoch)
	for ; v.told < len(steps); v.told++ {
		if err := say("volume %s: %s", v.Volume, steps[v.told]); err != nil {
			return err
		}
	}
	v.over = over || len(v.Pods) == 0 && len(steps) > 0
	return nil
}
