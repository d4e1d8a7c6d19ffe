package sight

import (
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// line is a list and a watch of leases. Each one that it brings is another version, and each takes a second
// on the controller's clock.
type line struct {
	sight   *Sight
	version int
	now     time.Time
}

var storage = []string{"n1", "n2", "n3"}

func newLine() *line {
	l := &line{now: time.Unix(1000, 0)}
	l.sight = New([]coordinationv1.Lease{*l.lease("n1", seconds(-5), 0), *l.lease("n2", seconds(-5), 0)}, l.now)
	return l
}

func (l *line) lease(name string, sent, silent time.Duration) *coordinationv1.Lease {
	l.version++
	o := leaseOf(name, storage, sent, silent)
	o.ResourceVersion = strconv.Itoa(l.version)
	return o
}

// leaseOf is the Lease of a node's guard, without a version.
func leaseOf(name string, members []string, sent, silent time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.GuardLeasePrefix + name, UID: "u", Annotations: map[string]string{
		v1alpha1.BootAnnotation: "boot", v1alpha1.WatchdogAnnotation: "true",
		v1alpha1.MembersAnnotation: string(ownership.MembersOf(name, members)),
		v1alpha1.SentAnnotation:    sent.String(), v1alpha1.SilentAnnotation: silent.String(),
	}}}
}

// brings lets the watch bring a renewal, edited.
func (l *line) brings(name string, sent, silent time.Duration, edit ...func(*coordinationv1.Lease)) {
	o := l.lease(name, sent, silent)
	for _, e := range edit {
		e(o)
	}
	l.now = l.now.Add(time.Second)
	l.sight.See(o, l.now)
}

// renews brings renewals of n2, five seconds apart on its clock, from a time to a time.
func (l *line) renews(from, to time.Duration) {
	for at := from; at <= to; at += 5 * time.Second {
		l.brings("n2", at, 5*time.Second)
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func TestANodeIsSteadyForAsLongAsItsOwnClockSays(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(l *line)
		want time.Duration
	}{
		"a node that is only in the list": {func(*line) {}, 0},
		"the first renewal may have been sent before the suspect's last one was stored": {
			func(l *line) { l.renews(0, seconds(10)) }, seconds(5)},
		"half a minute": {func(l *line) { l.renews(0, seconds(35)) }, seconds(30)},
		"nothing from before the suspect's last renewal counts": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n1", seconds(8), 0)
				l.renews(seconds(40), seconds(55))
			}, seconds(10)},
		"a renewal that just knew of the one before in time": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", seconds(51), seconds(9.9))
				l.renews(seconds(55), seconds(60))
			}, seconds(55)},
		"a renewal after which the node may have been silent for too long": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", seconds(51), seconds(10))
				l.renews(seconds(55), seconds(60))
			}, seconds(5)},
		"a node that is silent now": {
			func(l *line) { l.renews(0, seconds(35)); l.brings("n2", seconds(55), seconds(20)) }, 0},
		"a node that booted": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", seconds(40), 0, func(o *coordinationv1.Lease) { o.Annotations[v1alpha1.BootAnnotation] = "another" })
			}, 0},
		"a lease that was made anew": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", seconds(40), 0, func(o *coordinationv1.Lease) { o.UID = "v" })
			}, 0},
		"a lease that a person wrote into": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", 0, 0, func(o *coordinationv1.Lease) { o.Annotations[v1alpha1.SentAnnotation] = "soon" })
				l.renews(seconds(40), seconds(50))
			}, seconds(5)},
		"a lease of which a person took the word about the silence": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", seconds(40), 0, func(o *coordinationv1.Lease) { delete(o.Annotations, v1alpha1.SilentAnnotation) })
				l.renews(seconds(45), seconds(55))
			}, seconds(5)},
		"a lease that a person made anew": {
			func(l *line) {
				l.brings("n2", 0, 0, func(o *coordinationv1.Lease) { o.UID = "v"; o.Annotations[v1alpha1.SentAnnotation] = "soon" })
				for at := range 3 {
					l.brings("n2", seconds(float64(5+5*at)), 0, func(o *coordinationv1.Lease) { o.UID = "v" })
				}
			}, seconds(5)},
		"an edit that says what the last renewal said": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n2", seconds(35), 0)
				l.renews(seconds(40), seconds(50))
			}, seconds(45)},
		"a clock that went back": {
			func(l *line) { l.renews(0, seconds(35)); l.renews(seconds(10), seconds(25)) }, seconds(5)},
		"edits of a lease between two renewals": {
			func(l *line) {
				l.renews(0, seconds(35))
				l.brings("n1", 0, 0, func(o *coordinationv1.Lease) { o.Annotations[v1alpha1.SentAnnotation] = "1h0m0s" })
				for range 3 {
					l.brings("n2", seconds(35), 0)
				}
				l.brings("n2", seconds(70), 0)
				l.brings("n2", seconds(75), 0)
			}, 0},
		"a renewal that is brought twice": {
			func(l *line) {
				for range 3 {
					l.brings("n2", seconds(5), 0, func(o *coordinationv1.Lease) { o.ResourceVersion = "same" })
				}
				l.brings("n2", seconds(10), 0)
			}, 0},
		"more renewals than are remembered": {func(l *line) { l.renews(0, seconds(1000)) }, seconds(5 * (remembered - 2))},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine()
			l.brings("n1", seconds(3), 0)
			tc.play(l)
			suspect := l.sight.nodes["n1"].renewals
			if got := l.sight.steady("n2", suspect[len(suspect)-1].event); got != tc.want {
				t.Errorf("steady for %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheLeasesOfASuspectAreAboutItsLastRenewal(t *testing.T) {
	l := newLine()
	l.brings("n1", seconds(3), 0)
	l.renews(0, seconds(35))
	want := ownership.Leases{
		Suspect: "n1", Boot: "boot", Watchdog: true, KubeletAlive: true, Lapsed: 8 * time.Second,
		Named: ownership.MembersOf("n1", storage), Counted: ownership.MembersOf("n1", storage), Nodes: 3, Steady: 1,
	}
	if got := l.sight.Of("n1", "3", storage, true, l.now); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if late := l.sight.Of("n1", "4", storage, false, l.now.Add(time.Hour)); late.Steady != 0 || late.Named != "" {
		t.Errorf("the watch has not brought what was read, and says %+v", *late)
	}
	l.brings("n1", seconds(8), 0)
	if got := l.sight.Of("n1", l.sight.nodes["n1"].version, storage, true, l.now); got.Named == "" || got.Steady != 0 {
		t.Errorf("a node is steady since before the suspect's last renewal: %+v", *got)
	}
}

func TestANodeWhoseLeaseWasNeverSeenLapsesFromTheBegin(t *testing.T) {
	l := newLine()
	began := l.now
	l.brings("n1", seconds(3), 0)
	const name = v1alpha1.AgentLeasePrefix + "n9" // the name of a Lease that is no guard's
	l.sight.See(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, l.now)
	got := l.sight.Of(name, "", storage, false, began.Add(time.Minute))
	if got.Lapsed != time.Minute || got.Named != "" || got.Nodes != 4 {
		t.Errorf("got %+v", *got)
	}
	if _, proved := ownership.ContractProves(got); proved {
		t.Error("a lease that was never there proves something")
	}
}

func TestALeaseThatWasOnlyListedProvesAsMuchAsOneThatTheWatchBrought(t *testing.T) {
	l := newLine()
	l.renews(0, seconds(35))
	got := l.sight.Of("n1", "1", storage, false, l.now)
	if want := ownership.MembersOf("n1", storage); got.Named != want || got.Boot != "boot" || got.Steady != 1 || got.Lapsed != 8*time.Second {
		t.Errorf("got %+v", *got)
	}
}

func TestALeaseThatIsBroughtAgainWasNotRenewed(t *testing.T) {
	l := newLine()
	same := func(o *coordinationv1.Lease) { o.ResourceVersion = "same" }
	l.brings("n1", seconds(3), 0, same)
	l.brings("n1", seconds(3), 0, same)
	if lapsed := l.sight.Lapsed("n1", l.now); lapsed != time.Second {
		t.Errorf("it lapsed %v ago", lapsed)
	}
}

func TestNoNodeIsSteadySinceARenewalThatCannotBeRead(t *testing.T) {
	l := newLine()
	l.brings("n1", seconds(3), 0, func(o *coordinationv1.Lease) { o.Annotations[v1alpha1.SentAnnotation] = "soon" })
	version := l.sight.nodes["n1"].version
	l.renews(0, seconds(35))
	if got := l.sight.Of("n1", version, storage, false, l.now); got.Steady != 0 || got.Named == "" {
		t.Errorf("got %+v", *got)
	}
}
