package api

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/explore"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

var schedules = flag.Uint64("schedules", 20, "how many schedules are played against the API server, and against it by each mutant")

func TestMain(m *testing.M) { apitest.Main(m) }

// scene is the API server with a client for each process.
type scene struct {
	t       *testing.T
	clients map[string]client.Client
	// name is the part of the names of its Volumes that is its own.
	name  string
	made  int
	live  *v1alpha1.Volume
	tally map[string]int
}

func newScene(t *testing.T, name string) *scene {
	env := apitest.Start(t)
	s := &scene{t: t, name: name, tally: map[string]int{},
		clients: map[string]client.Client{person: env.Client, controller: env.Controller(t), scheduler: env.Scheduler(t)}}
	for _, who := range everybody {
		if s.clients[who] == nil {
			s.clients[who] = env.Agent(t, who)
		}
	}
	return s
}

// become makes the API server hold the record. Where it does not yet, an administrator, a backup or
// a new schedule changed it: the object is made anew.
func (s *scene) become(want *ownership.Volume) {
	s.t.Helper()
	if s.live != nil {
		if have, err := record.From(s.live); err == nil && reflect.DeepEqual(have, normal(want)) {
			return
		}
	}
	s.made++
	full, err := object(v1alpha1.VolumeName(fmt.Sprintf("%s %d", s.name, s.made)), want)
	if err != nil {
		s.t.Fatal(err)
	}
	admin, v, ctx := s.clients[person], full.DeepCopy(), s.t.Context()
	v.DeletionTimestamp = nil
	if err := admin.Create(ctx, v); err != nil {
		s.t.Fatal(err)
	}
	v.Status = full.Status
	if err := s.clients[controller].Status().Update(ctx, v); err != nil {
		s.t.Fatalf("the first record %+v: %v", full.Status.Ownership, err)
	}
	if want.Deleting {
		if err := admin.Delete(ctx, v); err != nil {
			s.t.Fatal(err)
		}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(v), v); err != nil {
			s.t.Fatal(err)
		}
	}
	s.live = v
}

// normal is the record as a reader gets it.
func normal(v *ownership.Volume) *ownership.Volume {
	o, err := object("vol-normal", v)
	if err != nil {
		return v
	}
	read, err := record.From(o)
	if err != nil {
		return v
	}
	return read
}

// accepts sends the write as its process.
func (s *scene) accepts(w explore.Written) {
	s.t.Helper()
	next, err := record.Into(s.live, w.After)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.clients[actor(w)].Status().Update(s.t.Context(), next); err != nil {
		s.t.Fatalf("%s may not write what the rules say (%s): %v\nbefore: %+v\nafter:  %+v", actor(w), kindOf(w), err, w.Before, w.After)
	}
	s.tally["accepted: "+kindOf(w)]++
	s.live = next
}

// refuses sends the write as a process that must not make it, and keeps nothing of it.
func (s *scene) refuses(w explore.Written, who, why string) {
	s.t.Helper()
	next, err := record.Into(s.live, w.After)
	if err != nil {
		s.tally["refused by the conversion: "+why]++
		return
	}
	switch err := s.clients[who].Status().Update(s.t.Context(), next, client.DryRunAll); {
	case err == nil:
		s.t.Errorf("%s may write this, and must not: %s\nbefore: %+v\nafter:  %+v", who, why, w.Before, w.After)
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err):
		s.t.Fatalf("%s was neither allowed nor refused: %v", who, err)
	}
	s.tally["refused: "+why]++
}

func (s *scene) count() {
	for _, what := range slices.Sorted(maps.Keys(s.tally)) {
		s.t.Logf("%7d %s", s.tally[what], what)
	}
}

func TestTheAPIAcceptsWhatTheRulesWriteFromItsWriterAlone(t *testing.T) {
	s := newScene(t, t.Name())
	for seed := range *schedules {
		for _, w := range life(seed, explore.Berth()) {
			s.become(w.Before)
			for _, who := range others(w) {
				role := "the agent of another node"
				if slices.Contains([]string{stranger, controller, scheduler, person}, who) {
					role = who
				}
				s.refuses(w, who, "the write of another process, by "+role)
			}
			s.accepts(w)
			if t.Failed() {
				t.Fatalf("in schedule %d", seed)
			}
		}
	}
	s.count()
}

// TestTheAPIRefusesWhatMutantsWrite plays the mutants, and sends each write in which the checks
// found a violation that the record itself shows.
func TestTheAPIRefusesWhatMutantsWrite(t *testing.T) {
	s := newScene(t, t.Name())
	for _, m := range explore.Mutants() {
		for seed := range *schedules {
			for _, w := range life(seed, m.Rules()) {
				if w.Wrong == "" || w.Before == nil {
					continue
				}
				if reason := whyUnseen(w); reason != "" {
					s.tally["unseen: "+reason]++
					continue
				}
				if _, err := object("vol-malformed", w.Before); err != nil {
					s.tally["refused by the conversion: the record before"]++
					continue
				}
				if strings.HasSuffix(w.Wrong, "of a manual volume") {
					w.Before, w.After = manual(w.Before), manual(w.After)
				}
				s.become(w.Before)
				class, _, _ := strings.Cut(w.Wrong, ":")
				s.refuses(w, actor(w), "a mutant's write that breaks "+class)
			}
		}
	}
	s.count()
}

// manual is the record of a volume that does not fail over by itself, of which a mutant has read the opposite.
func manual(v *ownership.Volume) *ownership.Volume {
	is := *v
	is.Failover.Automatic = false
	return &is
}
