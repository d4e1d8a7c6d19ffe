package ownership_test

import (
	"slices"
	"strings"
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func TestPhaseEdges(t *testing.T) {
	edges := map[string][2]Phase{
		"Stage takes a released volume over":                  {Released, Preparing},
		"Stage takes a fenced volume over":                    {Fenced, Preparing},
		"Stage activates a prepared epoch":                    {Preparing, Active},
		"Unstage gives an unwritten epoch back":               {Preparing, Released},
		"Unstage releases a written epoch":                    {Active, Released},
		"the controller fences a node that prepared and died": {Preparing, Fenced},
		"the controller fences a writer that died":            {Active, Fenced},
	}
	allowed := map[[2]Phase]bool{}
	for name, e := range edges {
		allowed[e] = true
		t.Run(name, func(t *testing.T) {
			if !e[1].MayFollow(e[0]) {
				t.Errorf("%v may not follow %v", e[1], e[0])
			}
		})
	}
	for old := Released; old <= Fenced; old++ {
		for p := Released; p <= Fenced; p++ {
			if want := p == old || allowed[[2]Phase{old, p}]; p.MayFollow(old) != want {
				t.Errorf("%v after %v: allowed %t, want %t", p, old, !want, want)
			}
		}
	}
}

var stateEdgeNames = map[string][2]State{
	"a reserved replica starts to sync":                   {Reserved, Syncing},
	"a reserved replica is ready at once":                 {Reserved, Ready},
	"a reserved replica fails":                            {Reserved, Failed},
	"a reserved replica is not wanted any more":           {Reserved, Removing},
	"a syncing replica is ready":                          {Syncing, Ready},
	"a syncing replica is in line and far behind":         {Syncing, Lagging},
	"a syncing replica turns out to have diverged":        {Syncing, Diverged},
	"a syncing replica fails":                             {Syncing, Failed},
	"a syncing replica loses the copy":                    {Syncing, Lost},
	"a syncing replica is not wanted any more":            {Syncing, Removing},
	"a ready replica falls behind":                        {Ready, Lagging},
	"a ready replica diverges by a failover":              {Ready, Diverged},
	"a ready replica is repaired":                         {Ready, Syncing},
	"a ready replica loses the copy":                      {Ready, Lost},
	"a ready replica fails":                               {Ready, Failed},
	"a ready replica is surplus":                          {Ready, Removing},
	"a lagging replica catches up":                        {Lagging, Ready},
	"a lagging replica diverges by a failover":            {Lagging, Diverged},
	"a lagging replica is filled anew":                    {Lagging, Syncing},
	"a lagging replica loses the copy":                    {Lagging, Lost},
	"a lagging replica fails":                             {Lagging, Failed},
	"a lagging replica is surplus":                        {Lagging, Removing},
	"a diverged replica is rolled back and syncs":         {Diverged, Syncing},
	"a diverged replica is rolled back and ready":         {Diverged, Ready},
	"a diverged replica is rolled back and behind":        {Diverged, Lagging},
	"a diverged replica loses the copy":                   {Diverged, Lost},
	"a diverged replica is surplus":                       {Diverged, Removing},
	"a failed replica tries again":                        {Failed, Syncing},
	"a failed replica is given up":                        {Failed, Removing},
	"a lost replica is filled anew":                       {Lost, Syncing},
	"a lost replica was found and is ready":               {Lost, Ready},
	"a lost replica was found and is behind":              {Lost, Lagging},
	"a lost replica is given up":                          {Lost, Removing},
	"a removal is taken back when the copy is needed":     {Removing, Syncing},
	"a removal is carried out and the copy has gone away": {Removing, Gone},
}

func TestReplicaStateEdges(t *testing.T) {
	allowed := map[[2]State]bool{}
	for name, e := range stateEdgeNames {
		allowed[e] = true
		t.Run(name, func(t *testing.T) {
			if !e[1].MayFollow(e[0]) {
				t.Errorf("%v may not follow %v", e[1], e[0])
			}
		})
	}
	for old := Reserved; old <= Gone; old++ {
		for s := Reserved; s <= Gone; s++ {
			if want := s == old || allowed[[2]State{old, s}]; s.MayFollow(old) != want {
				t.Errorf("%v after %v: allowed %t, want %t", s, old, !want, want)
			}
		}
	}
}

func TestTheRoleOfAReplicaFollowsFromTheRecord(t *testing.T) {
	tests := map[string]struct {
		volume *Volume
		node   string
		want   Role
	}{
		"a standby of a released volume":     {volume(), "a", Standby},
		"a standby beside the owner":         {volume(owned(Active)), "b", Standby},
		"taking over":                        {volume(owned(Preparing)), "a", Taking},
		"writing":                            {volume(owned(Active)), "a", Writing},
		"writing, after an earlier stop":     {volume(owned(Active), entry("a", func(r *Replica) { r.Unstaged = e1 })), "a", Writing},
		"demoting after the promise to stop": {volume(owned(Active), entry("a", func(r *Replica) { r.Unstaged = e2 })), "a", Demoting},
		"a standby after the fence":          {volume(owned(Fenced)), "a", Standby},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RoleOf(tt.volume, tt.node); got != tt.want {
				t.Errorf("RoleOf() = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestEveryReasonHasAMessageThatNamesItsParticulars(t *testing.T) {
	if !slices.Contains(Reasons(), Settled) || !slices.Contains(Reasons(), ShutOut) {
		t.Errorf("there are only the reasons %v", Reasons())
	}
	if m := (Why{Reason: "New"}).Message(); m != "New" {
		t.Errorf("a reason without a message says %q", m)
	}
	for _, r := range Reasons() {
		w := Why{Reason: r, Node: "a", Point: at(e1, 3), Epoch: e2, Count: 2}
		if m := w.Message(); m == string(r) || strings.Contains(m, "%!") {
			t.Errorf("%s: message %q", r, m)
		}
	}
}
