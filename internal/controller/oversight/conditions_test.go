package oversight

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
)

func TestWhichConditionsAVolumeGets(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	waits := func(r ownership.Reason) ownership.Action {
		return ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: r}}
	}
	message := func(r ownership.Reason) string { return (&ownership.Action{Why: ownership.Why{Reason: r}}).Message() }
	had := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: status, Reason: reason, Message: message,
			ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(at.Add(-time.Hour))}}
	}
	lost := func(nodes ...string) (machines []ownership.Machine) {
		for _, n := range nodes {
			machines = append(machines, ownership.Machine{Name: n, Lost: true})
		}
		return machines
	}
	const begun = ownership.WatchFirst
	noProof := string(ownership.NoProof)
	for name, tc := range map[string]struct {
		watching      time.Duration
		had           []metav1.Condition
		nodes         []ownership.Machine
		action        ownership.Action
		news, changed bool
		want          []string
	}{
		"it waits":                            {begun, nil, nil, waits(ownership.NoProof), true, true, []string{"Waiting True NoProof " + message(ownership.NoProof)}},
		"it waits for nothing, and never did": {begun, nil, nil, ownership.Action{}, false, false, nil},
		"it waits as before":                  {begun, had(metav1.ConditionTrue, noProof, message(ownership.NoProof)), nil, waits(ownership.NoProof), false, false, []string{"Waiting True NoProof " + message(ownership.NoProof)}},
		"it waits for the same, and there is more to say":            {begun, had(metav1.ConditionTrue, noProof, "old"), nil, waits(ownership.NoProof), false, true, []string{"Waiting True NoProof " + message(ownership.NoProof)}},
		"it waits for something else":                                {begun, had(metav1.ConditionTrue, "Other", ""), nil, waits(ownership.NoProof), true, true, []string{"Waiting True NoProof " + message(ownership.NoProof)}},
		"it waits again":                                             {begun, had(metav1.ConditionFalse, noProof, ""), nil, waits(ownership.NoProof), true, true, []string{"Waiting True NoProof " + message(ownership.NoProof)}},
		"it waits no more":                                           {begun, had(metav1.ConditionTrue, noProof, ""), nil, ownership.Action{}, false, true, []string{"Waiting False NothingWaits "}},
		"many nodes look lost":                                       {begun, nil, nil, waits(ownership.BrakeHeld), true, true, []string{"Waiting True BrakeHeld " + message(ownership.BrakeHeld)}},
		"the controller has just begun":                              {0, nil, lost("n2"), waits(ownership.BrakeHeld), false, false, nil},
		"it has just begun, and the volume waits for something else": {0, nil, lost("n2"), waits(ownership.NoProof), true, true, []string{"Waiting True NoProof " + message(ownership.NoProof)}},
		"nodes do not answer": {begun, nil, lost("n9", "n2", "n1"), ownership.Action{}, false, true,
			[]string{"ReplicaAway True NodeAway node n1 does not answer; its replica was Ready; node n2 does not answer; its replica was Ready"}},
		"only a node without a replica does not answer": {begun, nil, lost("n9"), ownership.Action{}, false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := &question{volume: &v1alpha1.Volume{}, facts: ownership.ControllerFacts{Now: at, Record: shared(), Watching: tc.watching, Nodes: tc.nodes}}
			q.volume.Generation, q.volume.Status.Conditions = 7, tc.had
			news, changed := q.conditions(&tc.action)
			if news != tc.news || changed != tc.changed {
				t.Errorf("news %v, changed %v", news, changed)
			}
			var got []string
			for _, c := range q.volume.Status.Conditions {
				got = append(got, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
				turned := len(tc.had) == 0 || tc.had[0].Status != c.Status
				if changed && (c.ObservedGeneration != 7 || turned && !c.LastTransitionTime.Time.Equal(at)) {
					t.Errorf("%s is of generation %d and since %v", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// recording are rules that record twice and then wait for a proof.
var recording = ownership.Chain[ownership.ControllerFacts]{{Name: "records", Decide: func(f *ownership.ControllerFacts) (ownership.Action, bool) {
	next := *f.Record
	fenced := ownership.Why{Reason: ownership.WriterFenced}
	switch {
	case !f.Record.Clean:
		next.Clean = true
		return ownership.Action{Verb: ownership.Record, Next: &next, Why: fenced}, true
	case f.Record.ExpireAt.IsZero():
		next.ExpireAt = time.Unix(1000, 0).UTC()
		return ownership.Action{Verb: ownership.Record, Next: &next, Why: fenced}, true
	}
	return ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.NoProof}}, true
}}}

// Between the two records nothing is said about what the volume waits for: the rules have not come so far.
func TestConditionsAreWrittenWithTheLastRecordAndTold(t *testing.T) {
	objects := cluster(t, shared())
	objects[0].(*v1alpha1.Volume).Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "Old"}}
	created := 0
	for fails := 0; fails <= created; fails++ {
		inWorld(t, objects, func(w *world) {
			r := w.controller(func(r *Reconciler) { r.Rules = recording })
			w.passes(ownership.WatchFirst)
			var reasons []string
			creates := 0
			w.server.After = func(wr lagging.Write) error {
				if wr.Verb == "update status" {
					reasons = append(reasons, w.volume().Status.Conditions[0].Reason)
				}
				return nil
			}
			w.server.Before = func(wr lagging.Write) error {
				if wr.Verb != "create" {
					return nil
				}
				if creates++; creates == fails {
					return errAway
				}
				return nil
			}
			_, err := r.Reconcile(w.t.Context(), named(id))
			if fails > 0 {
				if !errors.Is(err, errAway) {
					t.Errorf("event %d was not made, and the error is %v", fails, err)
				}
				return
			}
			created = creates
			if want := []string{"Old", string(ownership.NoProof)}; err != nil || !slices.Equal(reasons, want) {
				t.Errorf("with the records it said that it waits for %v: %v", reasons, err)
			}
			if diff := cmp.Diff([]string{"NoProof", "NoProof", "WriterFenced", "WriterFenced"}, w.told()); diff != "" {
				t.Error(diff)
			}
		})
	}
	if created == 0 {
		t.Error("no event was made")
	}
}

func TestANodeThatDoesNotAnswerIsNoNewsForUsers(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.dead["n2"] = true
		w.passes(time.Minute)
		w.oversees(r)
		if len(w.volume().Status.Conditions) == 0 || len(w.told()) > 0 {
			t.Errorf("the conditions are %v, and users are told %v", w.volume().Status.Conditions, w.told())
		}
	})
}

// told are the reasons of the events, in order.
func (w *world) told() (reasons []string) {
	w.t.Helper()
	var list eventsv1.EventList
	if err := w.server.Others().List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		reasons = append(reasons, list.Items[i].Reason)
	}
	slices.Sort(reasons)
	return reasons
}
