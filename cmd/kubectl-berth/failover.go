package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/failover"
	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/survey"
)

// moving is a command that has volumes go on at other nodes.
type moving struct {
	t     *target
	open  opener
	clock clock.PassiveClock
	// wait waits between two looks at one volume, and pause between two at the cluster.
	wait, pause failover.Wait
	// The flags.
	yes      bool
	patience time.Duration
}

// moveCommands have volumes go on at other nodes.
func moveCommands(t *target, open opener) []*cobra.Command {
	m := moving{t: t, open: open, clock: clock.RealClock{}, wait: blink, pause: pause}
	return []*cobra.Command{newFailoverCommand(m), newDrainCommand(m)}
}

// blink waits between two looks at a change that takes seconds.
func blink(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(300 * time.Millisecond):
		return nil
	}
}

func newFailoverCommand(m moving) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "failover VOLUME | failover CLAIM",
		Short: "Shut the node that writes a shared disk out, so that the volume goes on at a standby",
		Long: `Shut the node that writes a shared disk out, so that the volume goes on at a standby.
A claim is NAME or NAMESPACE/NAME.

Berth does this by itself once it suspects a node. The command asks for it now. A
standby takes the disk's reservation, so that the disk refuses the old node; the pods
there end, and the next ones start where the volume is. Pods of a node that still
answers lose what they have not synced: kubectl berth drain moves volumes without that.
Where several nodes write, --from names the one that is shut out; the others go on.

Without --yes the command says what would happen, and does nothing. It is refused
while no standby is ready, while too many nodes look lost, and where the disk may
forget who is shut out; the refusal says what to do.`,
		Example: "  # Say what would happen; then do it.\n  kubectl berth failover data -n shop\n  kubectl berth failover data -n shop --yes\n" +
			"  # Shut one of several writers out.\n  kubectl berth failover data -n shop --from node-1 --yes",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return m.failover(cmd, args[0], from, to) },
	}
	m.flags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the node that is shut out; may be empty where one node writes")
	cmd.Flags().StringVar(&to, "to", "", "the standby that shuts the writer out; empty means the first that is ready")
	cmd.ValidArgsFunction = completeNames("pvc", m.t, func(t target) (client.Reader, string, error) { return m.open(t) })
	return cmd
}

func (m *moving) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.yes, "yes", false, "do it; without it the command only says what it would do")
	cmd.Flags().DurationVar(&m.patience, "timeout", 5*time.Minute, "for how long to wait for the end; what was begun goes on after that")
}

// look gathers the cluster for a command that changes it.
func (m *moving) look(cmd *cobra.Command, notes io.Writer) (client.Client, survey.Cluster, string, error) {
	c, namespace, err := m.open(*m.t)
	if err != nil {
		return nil, survey.Cluster{}, "", err
	}
	found, err := gather(cmd.Context(), question{reader: c, system: m.t.system, namespace: namespace, notes: notes, live: m.yes})
	return c, survey.Cluster{Lists: found.Lists, Heartbeats: found.Heartbeats}, namespace, err
}

func (m *moving) failover(cmd *cobra.Command, name, from, to string) error {
	c, cluster, namespace, err := m.look(cmd, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	v, err := oneVolume(cluster, name, namespace)
	if err != nil {
		return err
	}
	pods, machines := cluster.Users()[v.Name], cluster.Machines()
	facts, err := failover.FactsOf(v, machines)
	if err != nil {
		return err
	}
	plan, err := failover.PlanOf(facts, from, to)
	if err != nil {
		return err
	}
	if !m.yes {
		if err := foretell(cmd.OutOrStdout(), &plan, pods); err != nil {
			return err
		}
		return errUnconfirmed
	}
	if plan, err = failover.Ask(cmd.Context(), c, &plan, to, machines); err != nil {
		return err
	}
	f := &failover.Follower{Client: c, Clock: m.clock, Wait: m.wait, Patience: m.patience, Tell: func(step string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), plain.Line(step))
		return err
	}}
	return f.Follow(cmd.Context(), &plan, len(pods) > 0)
}

// oneVolume is the one volume with a record of ownership that the name stands for.
func oneVolume(c survey.Cluster, name, namespace string) (found *v1alpha1.Volume, err error) {
	named := c.VolumesNamed(name, namespace)
	for i := range c.Volumes {
		switch v := &c.Volumes[i]; {
		case v.Spec.Replication.Kind == "" || !named(v):
		case found != nil:
			return nil, fmt.Errorf("%s stands for two volumes, %s and %s: name one of them", name, found.Name, v.Name)
		default:
			found = v
		}
	}
	if found == nil {
		return nil, noReplicas(name)
	}
	return found, nil
}

// foretell says what a failover would do.
func foretell(to io.Writer, p *failover.Plan, pods []*corev1.Pod) error {
	var s strings.Builder
	fmt.Fprintf(&s, "Volume %s, which node %s writes in epoch %d:\n", p.Volume, p.From, p.Epoch)
	if p.Asked {
		fmt.Fprintf(&s, "  node %s has been asked already to shut node %s out\n", p.By, p.From)
	} else {
		fmt.Fprintf(&s, "  node %s would shut node %s out at the disk\n", p.By, p.From)
	}
	if names := podsAt(pods, p.From); names != "" {
		fmt.Fprintf(&s, "  on node %s these pods would end: %s\n", p.From, names)
	}
	if len(p.Others) > 0 {
		fmt.Fprintf(&s, "  these nodes would go on writing: %s\n", strings.Join(p.Others, ", "))
	}
	fmt.Fprintf(&s, "  the next pod can go on at: %s\n", strings.Join(p.Standbys, ", "))
	if p.Answers {
		fmt.Fprintf(&s, "Node %s answers. Its pods would lose what they have not synced. To move its volumes without that:\n  kubectl berth drain %s\n", p.From, p.From)
	}
	_, err := io.WriteString(to, s.String())
	return err
}

// podsAt are the names of the pods on a node.
func podsAt(pods []*corev1.Pod, node string) string {
	var names []string
	for _, p := range pods {
		if p.Spec.NodeName == node {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, ", ")
}
