package failover

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/ownership"
)

// Facts are what a plan follows from.
type Facts struct {
	// Name of the volume, for messages.
	Name   string
	Record *ownership.Volume
	// Nodes are the storage nodes. One that does not answer is Lost.
	Nodes []ownership.Machine
	// Braked: a controller says that the brake holds this volume's failover.
	Braked bool
}

// Plan is what a failover would do.
type Plan struct {
	Volume string `json:"volume"`
	// Epoch is the number of the epoch that ends.
	Epoch uint64 `json:"epoch"`
	// From is the node that is shut out, and By the one that does it.
	From string `json:"from"`
	By   string `json:"by"`
	// Standbys are the nodes that are ready to go on with the volume, in order. By is one of them. Where several nodes
	// write, those are among them.
	Standbys []string `json:"standbys"`
	// Others are the nodes that write besides From, and go on.
	Others []string `json:"others,omitempty"`
	// Answers: the node that may write answers. Its pods then lose what they have not synced.
	Answers bool `json:"answers"`
	// Asked: the record has the request already.
	Asked bool `json:"asked"`
	// Over: the epoch ended before anybody was asked.
	Over bool `json:"over"`
}

// RefusedError is the reason why a volume cannot be failed over now, and what to do.
type RefusedError struct{ Message string }

func (r *RefusedError) Error() string { return r.Message }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// OutOfService is the command by which an administrator says that a node's machine is off.
func OutOfService(node string) string {
	return "kubectl taint nodes " + node + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
}

// writer is the node that is to be shut out. Where several write, a person names it: one that is shut out without need
// loses what its pods have not synced.
func (f *Facts) writer(named string) (string, error) {
	writing := f.Record.Writing()
	switch {
	case f.Record.Deleting:
		return "", refuse("volume %s is being deleted", f.Name)
	case len(writing) == 0:
		return "", refuse("no node writes volume %s, so there is none to shut out: its next pod gets it on a node that kubectl berth replicas shows", f.Name)
	case named != "" && !slices.Contains(writing, named):
		return "", refuse("node %s does not write volume %s, so there is nothing to shut it out of (these do: %s)", named, f.Name, strings.Join(writing, ", "))
	case named == "" && len(writing) > 1:
		return "", refuse("several nodes write volume %s (%s): name the one that is to be shut out with --from", f.Name, strings.Join(writing, ", "))
	case named == "":
		return writing[0], nil
	}
	return named, nil
}

// PlanOf says what a failover would do. from is the writer that is shut out, and empty if there is one only; to is the
// standby that does it, and empty for the first that can. The error is a *RefusedError.
func PlanOf(f *Facts, from, to string) (Plan, error) {
	from, err := f.writer(from)
	if err != nil {
		return Plan{}, err
	}
	v := f.Record.On(from)
	p := Plan{Volume: f.Name, Epoch: v.Epoch.Number, From: from, Answers: !f.lost(from), Standbys: f.standbys(from), Others: besides(v, from)}
	switch {
	case !v.Kind.Traits().Reserves || !v.Sharing.Persistent:
		return p, refuse("there is no automatic takeover of volume %s: its disk may forget who is shut out, so it proves nothing about node %s. "+
			"Make sure that the machine is off, and say so; the volume then fails over by itself: %s", f.Name, from, OutOfService(from))
	case f.Braked || ownership.BrakeHolds(f.Nodes):
		return p, refuse("%s. If the machine of node %s is off for certain, say so; the volume then fails over by itself: %s",
			ownership.Why{Reason: ownership.BrakeHeld}.Message(), from, OutOfService(from))
	case len(p.Standbys) == 0:
		return p, refuse("no standby of volume %s is ready: %s", f.Name, f.others(from))
	case to != "" && !slices.Contains(p.Standbys, to):
		return p, refuse("node %s cannot shut node %s out: it is no standby that is ready and answers (these are: %s)", to, from, strings.Join(p.Standbys, ", "))
	}
	p.By = p.Standbys[0]
	if to != "" {
		p.By = to
	}
	if r := v.FenceRequest; r.Epoch == v.Epoch && slices.Contains(p.Standbys, r.Executor) && (to == "" || to == r.Executor) {
		p.By, p.Asked = r.Executor, true
	}
	return p, nil
}

func (f *Facts) lost(node string) bool {
	return !slices.ContainsFunc(f.Nodes, func(m ownership.Machine) bool { return m.Name == node && !m.Lost })
}

// besides are the nodes that write a volume besides one.
func besides(v *ownership.Volume, node string) (others []string) {
	for _, n := range v.Writing() {
		if n != node {
			others = append(others, n)
		}
	}
	return others
}

// standbys are the nodes that could go on with the volume of a node now. Those that shall be shut out themselves
// come last.
func (f *Facts) standbys(of string) (nodes []string) {
	var last []string
	for i := range f.Record.Replicas {
		e := &f.Record.Replicas[i]
		switch v := f.Record.On(e.Node); {
		case e.State != ownership.Ready || e.Node == of || f.lost(e.Node):
		case v.Primary.Node == e.Node && v.FenceRequest != ownership.FenceRequest{}:
			last = append(last, e.Node)
		default:
			nodes = append(nodes, e.Node)
		}
	}
	return append(nodes, last...)
}

// others says why the replicas beside a node's are no standbys.
func (f *Facts) others(of string) string {
	var said []string
	for i := range f.Record.Replicas {
		switch e := &f.Record.Replicas[i]; {
		case e.Node == of:
		case f.lost(e.Node):
			said = append(said, "node "+e.Node+" does not answer")
		default:
			said = append(said, fmt.Sprintf("the replica on node %s is %v", e.Node, e.State))
		}
	}
	if len(said) == 0 {
		return "it has no other replica"
	}
	return strings.Join(said, ", ")
}

// Progress says how far a failover has come, step by step, and whether it is over. wanted tells whether a pod
// shall go on with the volume: then it is over when the next node writes, else when no node does. Where several nodes
// write, it is over with the epoch: the others have the volume already.
func Progress(p *Plan, v *ownership.Volume, wanted bool) (steps []string, over bool) {
	v = v.On(p.From)
	later, open := v.Epoch.Number > p.Epoch, v.Primary.Phase.Open()
	if p.Over {
		steps = append(steps, fmt.Sprintf("epoch %d of node %s is over already: no node is asked to shut it out", p.Epoch, p.From))
	} else {
		steps = shutting(p, v, later)
	}
	if v.Sharing.ManyWriters {
		return goingOn(steps, v, p.From, later || !open)
	}
	if !later {
		return steps, !open && !wanted
	}
	steps = append(steps, fmt.Sprintf("node %s takes the volume in epoch %d", v.Primary.Node, v.Epoch.Number))
	if v.Primary.Phase == ownership.Active {
		return append(steps, fmt.Sprintf("node %s may write", v.Primary.Node)), true
	}
	return steps, !open && !wanted
}

// goingOn adds who writes besides a node that does not any more.
func goingOn(steps []string, v *ownership.Volume, node string, over bool) ([]string, bool) {
	if others := besides(v, node); over && len(others) > 0 {
		steps = append(steps, "these nodes write the volume: "+strings.Join(others, ", "))
	}
	return steps, over
}

// keepsOut tells whether the disk takes no write of the plan's epoch, which is over. The next owner of the volume has
// reserved the disk, and where several nodes write, a standby must have said so: the epoch may have ended otherwise.
func keepsOut(p *Plan, v *ownership.Volume) bool {
	return !v.Sharing.ManyWriters || slices.ContainsFunc(v.Replicas, func(e ownership.Replica) bool { return e.Fenced.Number == p.Epoch })
}

// shutting are the steps until the writer of the plan's epoch is shut out.
func shutting(p *Plan, v *ownership.Volume, later bool) []string {
	by, _ := v.Replica(p.By)
	steps := []string{fmt.Sprintf("node %s is asked to shut node %s out", p.By, p.From)}
	switch {
	case !later && v.Primary.Phase == ownership.Released:
		return append(steps, fmt.Sprintf("node %s has let go by itself", p.From))
	case by.Fenced == v.Epoch && v.Primary.Phase.Open(), (later || v.Primary.Phase == ownership.Fenced) && keepsOut(p, v):
		steps = append(steps, fmt.Sprintf("the disk refuses what node %s writes", p.From))
	}
	if later || v.Primary.Phase == ownership.Fenced {
		steps = append(steps, fmt.Sprintf("epoch %d of node %s is over, and pods that it leaves behind are ended", p.Epoch, p.From))
	}
	return steps
}
