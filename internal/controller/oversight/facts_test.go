package oversight

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

func TestWhatANodeProves(t *testing.T) {
	off := ownership.Proof{Kind: ownership.PowerOff, Node: "n1", Boot: boot}
	declared := ownership.Proof{Kind: ownership.OutOfService, Node: "n1"}
	says := func(value string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.PoweredOffAnnotation, value)
		}
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		want []ownership.Proof
	}{
		"a Node that does not exist":                 {},
		"a Node that says nothing":                   {node: node("n1")},
		"a taint":                                    {node: node("n1", tainted), want: []ownership.Proof{declared}},
		"another taint":                              {node: node("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}} })},
		"a power record":                             {node: node("n1", switchedOff("machine-of-n1", boot)), want: []ownership.Proof{off}},
		"a taint and a power record":                 {node: node("n1", tainted, switchedOff("machine-of-n1", boot)), want: []ownership.Proof{declared, off}},
		"a power record about another machine":       {node: node("n1", switchedOff("machine-of-n2", boot))},
		"a power record of a machine without a name": {node: node("n1", switchedOff("", boot), func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = "" })},
		"a power record without a boot":              {node: node("n1", switchedOff("machine-of-n1", ""))},
		"a power record without a time":              {node: node("n1", says(`{"machine":"machine-of-n1","boot":"boot-1"}`))},
		"a power record with more than is known":     {node: node("n1", says(`{"machine":"machine-of-n1","boot":"boot-1","since":"2026-01-01T00:00:00Z","maybe":true}`))},
		"two power records":                          {node: node("n1", says(`{"machine":"machine-of-n1","boot":"boot-1","since":"2026-01-01T00:00:00Z"}{}`))},
		"a power record that is none":                {node: node("n1", says("yes"))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, proofsOf(test.node)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDocumentedPowerRecordIsOne(t *testing.T) {
	for _, file := range []string{"docs/ownership.md", "api/v1alpha1/power.go"} {
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`kubectl annotate node NODE berth.dev/powered-off='(.*)'`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no example", file)
		}
		if r, err := v1alpha1.ParsePowerRecord(string(found[1])); err != nil || r.Since.Year() != 2026 {
			t.Errorf("%s: %+v, %v", file, r, err)
		}
	}
}

func TestWhichPodsUseAClaim(t *testing.T) {
	ephemeral := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	own := claim()
	own.Name = "p-d"
	own.OwnerReferences = []metav1.OwnerReference{{UID: "uid-of-p"}}
	stranger := own.DeepCopy()
	stranger.OwnerReferences[0].UID = "another"
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"its claim":                        {pod("p", "n1"), claim(), true},
		"another claim":                    {pod("p", "n1"), own, false},
		"a claim that is another volume's": {pod("p", "n1", ephemeral, func(p *corev1.Pod) { p.Spec.Volumes[0].Name = "e" }), own, false},
		"its own claim":                    {pod("p", "n1", ephemeral), own, true},
		"a claim of that name, not its":    {pod("p", "n1", ephemeral), stranger, false},
		"a pod without volumes":            {pod("p", "n1", func(p *corev1.Pod) { p.Spec.Volumes = nil }), claim(), false},
		"a secret of the name of its own claim": {pod("p", "n1", func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}
		}), own, false},
		"a volume that is no claim": {pod("p", "n1", func(p *corev1.Pod) { p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{} }), claim(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := uses(test.pod, test.claim); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestANodeIsWantedWhileAPodThereHasNotEnded(t *testing.T) {
	phase := func(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }
	got := wanted([]corev1.Pod{
		*pod("a", "n3"), *pod("b", "n1", pending), *pod("c", "n3"), *pod("d", "", pending),
		*pod("e", "n2", phase(corev1.PodSucceeded)), *pod("f", "n4", phase(corev1.PodFailed)), *pod("g", "n5", leaving),
	})
	if diff := cmp.Diff([]string{"n1", "n3", "n5"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhichPodsAFenceLeavesBehind(t *testing.T) {
	const here, gone = false, true
	started := func(p *corev1.Pod) {
		pending(p)
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	restarted := func(p *corev1.Pod) {
		pending(p)
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	}
	finished := func(p *corev1.Pod) {
		pending(p)
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	}
	waiting := func(p *corev1.Pod) { pending(p); p.Status.InitContainerStatuses = []corev1.ContainerStatus{{}} }
	over := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	for name, test := range map[string]struct {
		phase ownership.Phase
		pod   *corev1.Pod
		away  bool
		ends  bool
	}{
		"fenced, away: one that ran":                      {ownership.Fenced, pod("p", "n1"), gone, true},
		"fenced, away: one that waits":                    {ownership.Fenced, pod("p", "n1", pending), gone, true},
		"fenced, away: one that is deleted":               {ownership.Fenced, pod("p", "n1", leaving), gone, true},
		"fenced, away: one that is over":                  {ownership.Fenced, pod("p", "n1", over), gone, false},
		"fenced, back: one with a dead mount":             {ownership.Fenced, pod("p", "n1"), here, true},
		"fenced, back: one whose init container runs":     {ownership.Fenced, pod("p", "n1", started), here, true},
		"fenced, back: one whose init container ran":      {ownership.Fenced, pod("p", "n1", restarted), here, true},
		"fenced, back: one whose init container is over":  {ownership.Fenced, pod("p", "n1", finished), here, true},
		"fenced, back: one whose init container waits":    {ownership.Fenced, pod("p", "n1", waiting), here, false},
		"fenced, back: one that waits for the next epoch": {ownership.Fenced, pod("p", "n1", pending), here, false},
		"fenced, back: one that its kubelet ends":         {ownership.Fenced, pod("p", "n1", leaving), here, false},
		"fenced: one on another node":                     {ownership.Fenced, pod("p", "n2"), gone, false},
		"fenced: one without a node":                      {ownership.Fenced, pod("p", "", pending), gone, false},
		"owned: one of the owner":                         {ownership.Active, pod("p", "n1"), here, false},
		"owned: one of the owner, which is away":          {ownership.Active, pod("p", "n1"), gone, false},
		"owned: one of the owner that is deleted":         {ownership.Active, pod("p", "n1", leaving), gone, false},
		"owned: one with a dead mount elsewhere":          {ownership.Active, pod("p", "n2"), here, true},
		"owned: one with a dead mount elsewhere, away":    {ownership.Preparing, pod("p", "n2"), gone, true},
		"owned: one elsewhere that its kubelet ends":      {ownership.Active, pod("p", "n2", leaving), here, false},
		"owned: one elsewhere that no kubelet ends":       {ownership.Active, pod("p", "n2", leaving), gone, true},
		"owned: one elsewhere that waits and is deleted":  {ownership.Active, pod("p", "n2", pending, leaving), gone, true},
		"owned: the same, and its kubelet ends it":        {ownership.Active, pod("p", "n2", pending, leaving), here, false},
		"owned: one without a node that is deleted":       {ownership.Active, pod("p", "", pending, leaving), gone, false},
		"owned: one elsewhere that waits":                 {ownership.Active, pod("p", "n2", pending), gone, false},
		"released: one that ran, as its node still says":  {ownership.Released, pod("p", "n1"), gone, false},
		"released: one elsewhere":                         {ownership.Released, pod("p", "n2"), gone, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := copies(phase(test.phase))
			for _, heard := range []bool{true, false} {
				end, doubt := leftBehind(v, []corev1.Pod{*test.pod}, func(string) bool { return test.away }, func(string) bool { return heard })
				doubtful := test.ends && !test.away && !heard
				if len(end) > 0 != (test.ends && !doubtful) || len(doubt) > 0 != doubtful {
					t.Errorf("its node answers: %v; it ends: %v, it is in doubt: %v", heard, len(end) > 0, len(doubt) > 0)
				}
			}
		})
	}
}

// writer is what is known of the node n1, which writes.
func writer(e evidence) map[string]*evidence { return map[string]*evidence{"n1": &e} }

func TestWhenAVolumeIsAskedAboutAgain(t *testing.T) {
	at := time.Unix(1000, 0)
	wait, nothing := ownership.Action{Verb: ownership.Wait}, ownership.Action{}
	noSlot := ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.NoFreeSlot}}
	bare := func(v *ownership.Volume) { v.Primary, v.Replicas = ownership.Primary{Phase: ownership.Released}, nil }
	homeless := []corev1.Pod{*pod("p", "", pending)}
	waits := func(status metav1.ConditionStatus, since time.Time) *v1alpha1.Volume {
		v := &v1alpha1.Volume{}
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: status, LastTransitionTime: metav1.NewTime(since)}}
		return v
	}
	for name, test := range map[string]struct {
		question question
		action   ownership.Action
		want     time.Duration
	}{
		"nothing is due": {action: nothing},
		"it waits":       {action: wait, want: later},
		"it waits, and the controller has just begun": {question: question{facts: ownership.ControllerFacts{Watching: 1}}, action: wait, want: soon},
		"its primary is silent":                       {question: question{evidence: writer(evidence{silent: true})}, action: nothing, want: soon},
		"its primary is silent, and its guard has renewed a moment ago": {
			question: question{evidence: writer(evidence{silent: true, vouched: 300 * time.Millisecond})}, action: nothing, want: 300 * time.Millisecond,
		},
		"its primary is silent, and its guard's renewal is good for long": {question: question{evidence: writer(evidence{silent: true, vouched: time.Minute})}, action: nothing, want: soon},
		"its primary has been silent for long, and its guard renews again": {
			question: question{evidence: writer(evidence{silent: true, vouched: 300 * time.Millisecond, suspected: time.Hour})}, action: nothing, want: later,
		},
		"its primary is not silent, and its guard has renewed a moment ago": {question: question{evidence: writer(evidence{vouched: 300 * time.Millisecond})}, action: nothing},
		"an administrator says that its primary is stopped": {
			question: question{evidence: writer(evidence{proofs: []ownership.Proof{{Kind: ownership.OutOfService}}})}, action: nothing, want: soon,
		},
		"a pod has a dead mount": {question: question{stranded: []*corev1.Pod{pod("p", "n1")}}, action: nothing, want: later},
		"it has too few replicas": {
			question: question{facts: ownership.ControllerFacts{Record: copies(func(v *ownership.Volume) { v.Replicas = v.Replicas[:2] })}}, action: nothing, want: seldom,
		},
		"it has just come into sight, and nothing is to be done": {question: question{facts: ownership.ControllerFacts{Watching: time.Second}}, action: nothing},
		"its primary has been silent for long":                   {question: question{evidence: writer(evidence{silent: true, suspected: time.Hour})}, action: wait, want: later},
		"its attachments expire in a minute": {
			question: question{facts: ownership.ControllerFacts{Record: shared(phase(ownership.Released), func(v *ownership.Volume) { v.ExpireAt = at.Add(time.Minute) })}},
			action:   nothing, want: time.Minute,
		},
		"its attachments have expired": {
			question: question{facts: ownership.ControllerFacts{Record: shared(phase(ownership.Released), func(v *ownership.Volume) { v.ExpireAt, v.Replicas = at.Add(-time.Minute), nil })}},
			action:   nothing,
		},
		"a node shall take it before its attachments expire": {
			question: question{facts: ownership.ControllerFacts{
				Record: shared(phase(ownership.Released), func(v *ownership.Volume) { v.ExpireAt = at.Add(ownership.ExpireAfter + 3*time.Second) }), Wanted: []string{"n1"},
			}},
			action: nothing, want: 3 * time.Second,
		},
		"a replica's node is lost for a minute": {
			question: question{facts: ownership.ControllerFacts{Nodes: []ownership.Machine{{Name: "n2", Lost: true, LostFor: time.Minute}, {Name: "n9", Lost: true}}}},
			action:   nothing, want: ownership.RebuildDelay - time.Minute,
		},
		"another process says that a replica is away": {
			question: question{volume: &v1alpha1.Volume{Status: v1alpha1.VolumeStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReplicaAway, Status: metav1.ConditionTrue}}}}},
			action:   nothing, want: later,
		},
		"the nodes of its replicas answer": {
			question: question{facts: ownership.ControllerFacts{Nodes: []ownership.Machine{{Name: "n2"}}}}, action: nothing,
		},
		"a node without a replica is lost": {
			question: question{facts: ownership.ControllerFacts{Nodes: []ownership.Machine{{Name: "n9", Lost: true}}}}, action: nothing,
		},
		"a replica's node is lost for long": {
			question: question{facts: ownership.ControllerFacts{Nodes: []ownership.Machine{{Name: "n2", Lost: true, LostFor: time.Hour}}}},
			action:   nothing,
		},
		"a pod waits for a node, and none has an attachment": {
			question: question{pods: homeless, facts: ownership.ControllerFacts{Record: shared(bare)}}, action: nothing, want: later,
		},
		"a pod waits for a node, and one has an attachment": {
			question: question{pods: homeless, facts: ownership.ControllerFacts{Record: shared(phase(ownership.Released))}}, action: nothing,
		},
		"no pod waits for a node, and none has an attachment": {
			question: question{pods: []corev1.Pod{*pod("p", "n2", pending)}, facts: ownership.ControllerFacts{Record: shared(bare)}}, action: nothing,
		},
		"a pod waits for a node, and the volume is being deleted": {
			question: question{pods: homeless, facts: ownership.ControllerFacts{Record: shared(bare, func(v *ownership.Volume) { v.Deleting = true })}}, action: nothing,
		},
		"a pod waits for a node, and the volume has copies": {
			question: question{pods: homeless, facts: ownership.ControllerFacts{Record: copies(bare)}}, action: nothing,
		},
		"a pod waits on its node, and no node owns the volume": {
			question: question{facts: ownership.ControllerFacts{Record: shared(phase(ownership.Released)), Wanted: []string{"n2"}}}, action: nothing, want: later,
		},
		"a pod waits on its node, and a node owns the volume": {
			question: question{facts: ownership.ControllerFacts{Record: shared(), Wanted: []string{"n2"}}}, action: nothing,
		},
		"its owner's attachment is of no use": {
			question: question{facts: ownership.ControllerFacts{Record: shared(func(v *ownership.Volume) { v.Replicas[0].State = ownership.Syncing })}}, action: nothing, want: later,
		},
		"an owner's copy is not ready": {
			question: question{facts: ownership.ControllerFacts{Record: copies(func(v *ownership.Volume) { v.Replicas[0].State = ownership.Syncing })}}, action: nothing,
		},
		"the attachment of a node that has released the volume is of no use": {
			question: question{facts: ownership.ControllerFacts{Record: shared(phase(ownership.Released), func(v *ownership.Volume) { v.Replicas[0].State = ownership.Syncing })}}, action: nothing,
		},
		"an owner has no attachment": {
			question: question{facts: ownership.ControllerFacts{Record: shared(func(v *ownership.Volume) { v.Factor, v.Replicas = 1, v.Replicas[1:] })}}, action: nothing,
		},
		"the attachment of one of several writers is of no use": {
			question: question{facts: ownership.ControllerFacts{Record: together(func(v *ownership.Volume) { v.Replicas[0].State = ownership.Syncing })}}, action: nothing, want: later,
		},
		"a standby's attachment is of no use": {
			question: question{facts: ownership.ControllerFacts{Record: shared(func(v *ownership.Volume) { v.Replicas[1].State = ownership.Syncing })}}, action: nothing,
		},
		"it waits for a slot":                 {question: question{volume: waits(metav1.ConditionTrue, at)}, action: noSlot, want: soon},
		"it has waited for a slot for long":   {question: question{volume: waits(metav1.ConditionTrue, at.Add(-time.Hour))}, action: noSlot, want: later},
		"it has not waited for a slot before": {question: question{volume: waits(metav1.ConditionFalse, at.Add(-time.Hour))}, action: noSlot, want: soon},
	} {
		t.Run(name, func(t *testing.T) {
			q := test.question
			q.facts.Now = at
			if q.volume == nil {
				q.volume = &v1alpha1.Volume{}
			}
			if q.facts.Record == nil {
				q.facts.Record = copies()
			}
			if q.facts.Watching == 0 {
				q.facts.Watching = time.Hour
			}
			if got := next(&q, &test.action); got != test.want {
				t.Errorf("in %s, want %s", got, test.want)
			}
		})
	}
}

// The nodes that know a later epoch than a record from a backup may be none of its replicas.
func TestEveryNodeIsAskedOnceAPodHasWaitedForAVolumeThatNoNodeOwns(t *testing.T) {
	at := time.Unix(1000, 0)
	since := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(at.Add(-d))}}
		}
	}
	probed := func(p *corev1.Pod) {
		p.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: metav1.NewTime(at.Add(-time.Hour))}}, p.Status.Conditions...)
	}
	young := pod("young", "n2", pending, since(time.Second))
	for name, test := range map[string]struct {
		record *ownership.Volume
		pod    *corev1.Pod
		want   bool
	}{
		"another pod waits for a node for long":                  {shared(phase(ownership.Released)), pod("p", "", pending, since(time.Hour)), false},
		"another pod has ended long ago":                         {shared(phase(ownership.Released)), pod("p", "n2", since(time.Hour), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
		"it was placed a moment ago, and has been made long ago": {shared(phase(ownership.Released)), pod("p", "n2", pending, since(time.Second), probed), false},
		"it has waited for ten seconds":                          {shared(phase(ownership.Released)), pod("p", "n2", pending, since(later)), true},
		"it has waited for nine seconds":                         {shared(phase(ownership.Released)), pod("p", "n2", pending, since(later-time.Second)), false},
		"no scheduler says since when":                           {shared(phase(ownership.Released)), pod("p", "n2", pending), true},
		"a node owns the volume":                                 {shared(), pod("p", "n2", pending, since(time.Hour)), false},
		"the writer was shut out":                                {shared(phase(ownership.Fenced)), pod("p", "n2", pending, since(time.Hour)), false},
		"it waits for a node":                                    {shared(phase(ownership.Released)), pod("p", "", pending, since(time.Hour)), false},
		"it has ended":                                           {shared(phase(ownership.Released)), pod("p", "n2", since(time.Hour), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
		"the volume is being deleted":                            {shared(phase(ownership.Released), func(v *ownership.Volume) { v.Deleting = true }), pod("p", "n2", pending, since(time.Hour)), false},
		"the volume has copies of its own data":                  {copies(phase(ownership.Released)), pod("p", "n2", pending, since(time.Hour)), false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []corev1.Pod{*test.pod, *young}
			q := &question{pods: pods, facts: ownership.ControllerFacts{Record: test.record, Wanted: wanted(pods)}}
			if got := adrift(q, at); got != test.want {
				t.Errorf("every node is asked: %v", got)
			}
		})
	}
}
