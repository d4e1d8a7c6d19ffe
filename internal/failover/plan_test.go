package failover_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/failover"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

var (
	six   = lineage.Epoch{Number: 6, ID: "six"}
	seven = lineage.Epoch{Number: 7, ID: "seven"}
	eight = lineage.Epoch{Number: 8, ID: "eight"}
)

// disk is a shared disk that n1 writes; n2 and n3 stand by.
func disk(edits ...func(*ownership.Volume)) *ownership.Volume {
	v := &ownership.Volume{
		Kind: ownership.Attachments, Factor: 3, Sharing: ownership.Sharing{MaxShares: 3, Persistent: true}, Epoch: seven, Lineage: lineage.Lineage{{Epoch: seven}},
		Primary: ownership.Primary{Node: "n1", Boot: "boot", Phase: ownership.Active},
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		v.Replicas = append(v.Replicas, ownership.Replica{Node: n, State: ownership.Ready})
	}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

// facts are about four nodes, of which some do not answer.
func facts(v *ownership.Volume, lost ...string) *failover.Facts {
	f := &failover.Facts{Name: "vol", Record: v}
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		f.Nodes = append(f.Nodes, ownership.Machine{Name: n, Lost: strings.Contains(strings.Join(lost, " "), n)})
	}
	return f
}

func phase(p ownership.Phase) func(*ownership.Volume) {
	return func(v *ownership.Volume) { v.Primary.Phase = p }
}

func state(i int, s ownership.State) func(*ownership.Volume) {
	return func(v *ownership.Volume) { v.Replicas[i].State = s }
}

func TestAFailoverIsPlannedOrRefusedWithWhatToDo(t *testing.T) {
	asked := func(v *ownership.Volume) { v.FenceRequest = ownership.FenceRequest{Executor: "n3", Epoch: seven} }
	plan := func(by string, edits ...func(*failover.Plan)) failover.Plan {
		p := failover.Plan{Volume: "vol", Epoch: 7, From: "n1", By: by, Standbys: []string{"n2", "n3"}, Answers: true}
		for _, edit := range edits {
			edit(&p)
		}
		return p
	}
	const taint = "kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	for name, test := range map[string]struct {
		facts   *failover.Facts
		from    string
		to      string
		want    failover.Plan
		refusal []string
	}{
		"the first standby does it":       {facts: facts(disk()), want: plan("n2")},
		"the standby that is named":       {facts: facts(disk()), to: "n3", want: plan("n3")},
		"the writer is named":             {facts: facts(disk()), from: "n1", want: plan("n2")},
		"a node that does not write":      {facts: facts(disk()), from: "n2", refusal: []string{"node n2 does not write volume vol", "these do: n1"}},
		"the writer's node is lost":       {facts: facts(disk(), "n1"), want: plan("n2", func(p *failover.Plan) { p.Answers = false })},
		"a standby's node is lost":        {facts: facts(disk(), "n2"), want: plan("n3", func(p *failover.Plan) { p.Standbys = []string{"n3"} })},
		"it was asked before":             {facts: facts(disk(asked)), want: plan("n3", func(p *failover.Plan) { p.Asked = true })},
		"another one was asked before":    {facts: facts(disk(asked)), to: "n2", want: plan("n2")},
		"one that is lost was asked":      {facts: facts(disk(asked), "n3"), want: plan("n2", func(p *failover.Plan) { p.Standbys = []string{"n2"} })},
		"a preparing writer is shut out":  {facts: facts(disk(phase(ownership.Preparing))), want: plan("n2")},
		"no node writes":                  {facts: facts(disk(phase(ownership.Released))), refusal: []string{"no node writes volume vol"}},
		"it is fenced already":            {facts: facts(disk(phase(ownership.Fenced))), refusal: []string{"no node writes volume vol"}},
		"it is being deleted":             {facts: facts(disk(func(v *ownership.Volume) { v.Deleting = true })), refusal: []string{"is being deleted"}},
		"the target forgets reservations": {facts: facts(disk(func(v *ownership.Volume) { v.Sharing.Persistent = false })), refusal: []string{"no automatic takeover", taint}},
		"many nodes are lost":             {facts: facts(disk(), "n1", "n4"), refusal: []string{"too many nodes look lost", taint}},
		"a controller sees the brake":     {facts: &failover.Facts{Name: "vol", Record: disk(), Nodes: facts(disk()).Nodes, Braked: true}, refusal: []string{"too many nodes look lost", taint}},
		"no standby is ready": {facts: facts(disk(state(1, ownership.Syncing)), "n3"),
			refusal: []string{"no standby of volume vol is ready: the replica on node n2 is Syncing, node n3 does not answer"}},
		"there is no standby":      {facts: facts(disk(func(v *ownership.Volume) { v.Replicas = v.Replicas[:1] })), refusal: []string{"it has no other replica"}},
		"a writer is named":        {facts: facts(disk()), to: "n1", refusal: []string{"node n1 cannot shut node n1 out"}},
		"a stranger is named":      {facts: facts(disk()), to: "n4", refusal: []string{"no standby that is ready and answers (these are: n2, n3)"}},
		"a node that is no member": {facts: &failover.Facts{Name: "vol", Record: disk()}, refusal: []string{"node n2 does not answer, node n3 does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := failover.PlanOf(test.facts, test.from, test.to)
			if len(test.refusal) == 0 {
				if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
					t.Errorf("%v: %s", err, diff)
				}
				return
			}
			if _, refused := errors.AsType[*failover.RefusedError](err); !refused {
				t.Fatalf("not refused: %v", err)
			}
			for _, told := range test.refusal {
				if !strings.Contains(err.Error(), told) {
					t.Errorf("%q lacks %q", err, told)
				}
			}
		})
	}
}

// several makes the disk one that n2 writes, too, in epoch 6, and n3 wrote in epoch 5.
func several(v *ownership.Volume) {
	v.Sharing.ManyWriters, v.Factor = true, 1
	v.Writers = []ownership.Writer{
		{Primary: ownership.Primary{Node: "n2", Boot: "boot", Phase: ownership.Active}, Epoch: six},
		{Primary: ownership.Primary{Node: "n3", Boot: "boot", Phase: ownership.Released}, Epoch: lineage.Epoch{Number: 5, ID: "five"}},
	}
}

// writer changes the writer of n2.
func writer(change func(*ownership.Writer)) func(*ownership.Volume) {
	return func(v *ownership.Volume) { change(&v.Writers[0]) }
}

func TestOfSeveralWritersTheOneThatIsNamedIsShutOut(t *testing.T) {
	asked := func(by string) func(*ownership.Volume) {
		return writer(func(w *ownership.Writer) { w.FenceRequest = ownership.FenceRequest{Executor: by, Epoch: six} })
	}
	for name, test := range map[string]struct {
		facts    *failover.Facts
		from, to string
		want     failover.Plan
		refusal  string
	}{
		"one is named": {facts: facts(disk(several), "n2"), from: "n2",
			want: failover.Plan{Volume: "vol", Epoch: 6, From: "n2", By: "n1", Standbys: []string{"n1", "n3"}, Others: []string{"n1"}}},
		"the newest is named": {facts: facts(disk(several)), from: "n1", to: "n3",
			want: failover.Plan{Volume: "vol", Epoch: 7, From: "n1", By: "n3", Standbys: []string{"n2", "n3"}, Others: []string{"n2"}, Answers: true}},
		"one was asked already": {facts: facts(disk(several, asked("n3"))), from: "n2",
			want: failover.Plan{Volume: "vol", Epoch: 6, From: "n2", By: "n3", Standbys: []string{"n1", "n3"}, Others: []string{"n1"}, Answers: true, Asked: true}},
		"one that is to be shut out comes last": {facts: facts(disk(several, asked("n3"))), from: "n1",
			want: failover.Plan{Volume: "vol", Epoch: 7, From: "n1", By: "n3", Standbys: []string{"n3", "n2"}, Others: []string{"n2"}, Answers: true}},
		"one is left": {facts: facts(disk(several, phase(ownership.Fenced))),
			want: failover.Plan{Volume: "vol", Epoch: 6, From: "n2", By: "n1", Standbys: []string{"n1", "n3"}, Answers: true}},
		"none is named":  {facts: facts(disk(several)), refusal: "several nodes write volume vol (n1, n2): name the one that is to be shut out with --from"},
		"one that wrote": {facts: facts(disk(several)), from: "n3", refusal: "node n3 does not write volume vol, so there is nothing to shut it out of (these do: n1, n2)"},
		"none writes":    {facts: facts(disk(several, phase(ownership.Released), writer(func(w *ownership.Writer) { w.Primary.Phase = ownership.Fenced }))), from: "n2", refusal: "no node writes volume vol, so there is none to shut out: its next pod gets it on a node that kubectl berth replicas shows"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := failover.PlanOf(test.facts, test.from, test.to)
			if test.refusal != "" {
				if err == nil || err.Error() != test.refusal {
					t.Errorf("%v", err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}

func TestTheEndOfOneOfSeveralWritersIsTheEndOfItsFailover(t *testing.T) {
	p := &failover.Plan{Volume: "vol", Epoch: 6, From: "n2", By: "n1", Others: []string{"n1"}}
	shut := func(v *ownership.Volume) { v.Replicas[0].Fenced = six }
	fenced := writer(func(w *ownership.Writer) { w.Primary.Phase = ownership.Fenced })
	for name, test := range map[string]struct {
		record *ownership.Volume
		steps  int
		last   string
		over   bool
	}{
		"asked":                         {record: disk(several), steps: 1, last: "node n1 is asked to shut node n2 out"},
		"shut out":                      {record: disk(several, shut), steps: 2, last: "the disk refuses what node n2 writes"},
		"fenced, and the other goes on": {record: disk(several, shut, fenced), steps: 4, over: true, last: "these nodes write the volume: n1"},
		"fenced, and nobody is left":    {record: disk(several, shut, fenced, phase(ownership.Released)), steps: 3, over: true, last: "epoch 6 of node n2 is over, and pods that it leaves behind are ended"},
	} {
		t.Run(name, func(t *testing.T) {
			steps, over := failover.Progress(p, test.record, true)
			if len(steps) != test.steps || over != test.over || steps[len(steps)-1] != test.last {
				t.Errorf("%q, over %v", steps, over)
			}
		})
	}
	if steps, over := failover.Moved(disk(several), "n2", 6); over || len(steps) > 0 {
		t.Errorf("%q, over %v, while the node writes", steps, over)
	}
	if steps, over := failover.Moved(disk(several, fenced), "n2", 6); !over || len(steps) != 2 || steps[0] != "node n2 has let it go" {
		t.Errorf("%q, over %v, when the node has let go", steps, over)
	}
}

func TestTheStepsOfAFailoverAreToldAsTheRecordShowsThem(t *testing.T) {
	p := &failover.Plan{Volume: "vol", Epoch: 7, From: "n1", By: "n2"}
	taken := func(phase ownership.Phase) func(*ownership.Volume) {
		return func(v *ownership.Volume) {
			v.Epoch, v.Primary = eight, ownership.Primary{Node: "n3", Boot: "boot", Phase: phase}
		}
	}
	shut := func(v *ownership.Volume) { v.Replicas[1].Fenced = seven }
	for name, test := range map[string]struct {
		record *ownership.Volume
		wanted bool
		steps  int
		last   string
		over   bool
	}{
		"asked":                     {record: disk(), wanted: true, steps: 1, last: "node n2 is asked to shut node n1 out"},
		"shut out":                  {record: disk(shut), wanted: true, steps: 2, last: "the disk refuses what node n1 writes"},
		"fenced":                    {record: disk(shut, phase(ownership.Fenced)), wanted: true, steps: 3, last: "epoch 7 of node n1 is over, and pods that it leaves behind are ended"},
		"fenced, and no pod":        {record: disk(shut, phase(ownership.Fenced)), steps: 3, over: true, last: "epoch 7 of node n1 is over, and pods that it leaves behind are ended"},
		"released, and no pod":      {record: disk(phase(ownership.Released)), steps: 2, over: true, last: "node n1 has let go by itself"},
		"released, and a pod comes": {record: disk(phase(ownership.Released)), wanted: true, steps: 2, last: "node n1 has let go by itself"},
		"taken":                     {record: disk(shut, taken(ownership.Preparing)), wanted: true, steps: 4, last: "node n3 takes the volume in epoch 8"},
		"written":                   {record: disk(shut, taken(ownership.Active)), wanted: true, steps: 5, over: true, last: "node n3 may write"},
	} {
		t.Run(name, func(t *testing.T) {
			steps, over := failover.Progress(p, test.record, test.wanted)
			if len(steps) != test.steps || over != test.over || steps[len(steps)-1] != test.last {
				t.Errorf("%q, over %v", steps, over)
			}
		})
	}
}
