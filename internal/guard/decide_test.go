package guard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

const (
	s = time.Second
	// booted is a moment long after the machine's boot.
	booted = time.Hour
)

func epochOf(volume string) Epoch {
	return Epoch{Volume: volume, Epoch: lineage.Epoch{Number: 7, ID: "id"}, Holding: Holding{Device: "253:4", Block: true}}
}

// facts are those of a node of three that renewed its lease a second ago, with the volumes open.
func facts(volumes ...string) *Facts {
	f := &Facts{Now: booted, Renewed: booted - s, Tried: booted - s, Cleared: s, Sets: [][]string{{"n1", "n2", "n3"}}, Armed: len(volumes) > 0, Stoppable: true}
	for _, v := range volumes {
		f.Open = append(f.Open, epochOf(v))
	}
	f.Running = f.Open
	return f
}

// with returns the facts with a change.
func (f *Facts) with(change func(*Facts)) *Facts {
	change(f)
	return f
}

func silent(d time.Duration) func(*Facts) {
	return func(f *Facts) { f.Renewed, f.Tried = f.Now-d, f.Now-d }
}

func fenced(f *Facts) { f.Fenced, f.FencedAt = true, f.Now-s }

func fencedLongAgo(f *Facts) { f.Fenced, f.FencedAt = true, f.Now-time.Minute }

func stopped(f *Facts) { f.Running = nil }

// reserved are facts of a node whose volumes are on disks that keep late writes out: all, or the first.
func reserved(f *Facts) {
	for i := range f.Open {
		f.Open[i].Reserved = true
	}
}

func firstReserved(f *Facts) { f.Open[0].Reserved = true }

func ending(f *Facts) { f.Ending = true }

// exempt are facts of a node whose peers were without the API, too, when they were asked.
func exempt(ago time.Duration) func(*Facts) {
	return func(f *Facts) { f.Exempted, f.Alike = f.Now-ago, 2 }
}

func TestTheGuardDecidesBySilenceEpochsAndTheWordOfTheAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		f            *Facts
		verb         decide.Verb
		reason       ownership.Reason
		feed, disarm bool
	}{
		"a lease that was just renewed is held":                {facts("v"), Hold, ownership.LeaseHeld, true, false},
		"with an epoch open it is renewed after 4 s":           {facts("v").with(silent(4 * s)), Renew, Due, true, false},
		"without one it is not":                                {facts().with(silent(5 * s)), Hold, ownership.LeaseHeld, false, false},
		"without one it is renewed after 8 s":                  {facts().with(silent(8 * s)), Renew, Due, false, false},
		"a renewal under way is awaited":                       {facts("v").with(silent(9 * s)).with(func(f *Facts) { f.Renewing = true }), Hold, ownership.LeaseHeld, true, false},
		"the first renewal is not delayed":                     {facts().with(func(f *Facts) { f.Renewed, f.Tried, f.Cleared = 0, 0, f.Now }), Renew, Due, false, false},
		"after 18 s of silence writers go on":                  {facts("v").with(silent(18 * s)), Renew, Due, true, false},
		"after 19 s they do, and the watchdog is fed no more":  {facts("v").with(silent(19 * s)), Renew, Due, false, false},
		"after 20 s they stop, and nothing is renewed":         {facts("v").with(silent(20 * s)), Stop, ownership.CutOff, false, false},
		"a machine that slept stops before it renews":          {facts("v").with(silent(time.Hour - s)), Stop, ownership.CutOff, false, false},
		"with nothing open the guard is only fenced":           {facts().with(silent(20 * s)), Fence, ownership.CutOff, false, false},
		"an API that is away for most stops no writer":         {facts("v").with(silent(time.Minute)).with(exempt(18 * s)), Renew, ownership.APIAway, true, false},
		"unless it was not so within 20 s":                     {facts("v").with(silent(time.Minute)).with(exempt(20 * s)), Stop, ownership.CutOff, false, false},
		"a lone node is a majority":                            {facts("v").with(silent(time.Minute)).with(func(f *Facts) { f.Sets = [][]string{{"n1"}} }), Renew, ownership.APIAway, true, false},
		"a fenced guard waits for the agent":                   {facts().with(fenced).with(silent(time.Minute)), Hold, Fenced, false, false},
		"a fenced guard does not renew":                        {facts().with(fenced).with(silent(10 * s)), Hold, Fenced, false, false},
		"a fenced guard feeds once writers are stopped":        {facts("v").with(fenced).with(silent(time.Minute)).with(stopped), Hold, Fenced, true, false},
		"a fenced guard stops what still runs":                 {facts("v").with(fenced), Stop, StillRunning, false, false},
		"writers that do not stop are left to the watchdog":    {facts("v").with(fencedLongAgo).with(silent(time.Minute)), Reset, NotStopped, false, false},
		"without a watchdog a person must act":                 {facts("v").with(fencedLongAgo).with(silent(time.Minute)).with(func(f *Facts) { f.Armed = false }), Reset, NotStoppedNoWatchdog, false, false},
		"a disk that keeps late writes out needs no reset":     {facts("v").with(reserved).with(fencedLongAgo).with(silent(time.Minute)), Stop, NotStoppedReserved, true, false},
		"not even without a watchdog":                          {facts("v").with(reserved).with(fencedLongAgo).with(func(f *Facts) { f.Armed = false }), Stop, NotStoppedReserved, false, false},
		"its writers stop all the same":                        {facts("v").with(reserved).with(silent(20 * s)), Stop, ownership.CutOff, true, false},
		"another volume beside it needs the reset":             {facts("v", "w").with(firstReserved).with(fencedLongAgo).with(silent(time.Minute)), Reset, NotStopped, false, false},
		"a watchdog is disarmed once nothing is open":          {facts().with(func(f *Facts) { f.Armed = true }), Hold, ownership.LeaseHeld, true, true},
		"one that cannot be disarmed is fed":                   {facts().with(func(f *Facts) { f.Armed, f.Stoppable = true, false }), Hold, ownership.LeaseHeld, true, false},
		"asked to end, the guard stays while an epoch is open": {facts("v").with(ending), Hold, ownership.LeaseHeld, true, false},
		"asked to end with nothing open, it ends":              {facts().with(ending), End, Asked, false, false},
		"asked to end, it disarms the watchdog first":          {facts().with(ending).with(func(f *Facts) { f.Armed = true }), End, Asked, true, true},
		"asked to end where there is no watchdog, it ends":     {facts().with(ending).with(func(f *Facts) { f.Stoppable = false }), End, Asked, false, false},
		"right after the boot the first renewal is due":        {facts().with(func(f *Facts) { f.Now, f.Renewed, f.Tried, f.Cleared = 2*s, 0, 0, 2*s }), Renew, Due, false, false},
		"it never ends before a watchdog that goes on":         {facts().with(ending).with(func(f *Facts) { f.Armed, f.Stoppable = true, false }), Hold, ownership.LeaseHeld, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.reason == ownership.APIAway { // an attempt to return is due; between attempts the reason is told
				if d := Decide(tc.f); d.Verb != Renew || !d.Feed {
					t.Errorf("the guard decides to %v (feed %v)", d.Verb, d.Feed)
				}
				tc.f.Tried, tc.verb = tc.f.Now-s, Hold
			}
			d := Decide(tc.f)
			if d.Verb != tc.verb || d.Reason != string(tc.reason) || d.Feed != tc.feed || d.Disarm != tc.disarm {
				t.Errorf("the guard decides to %v because of %s (feed %v, disarm %v)", d.Verb, d.Reason, d.Feed, d.Disarm)
			}
			if d.Message == "" || d.Message == d.Reason {
				t.Errorf("%s says nothing to a person", d.Reason)
			}
		})
	}
}

func TestWritersStopTogether(t *testing.T) {
	d := Decide(facts("b", "a").with(fencedLongAgo))
	if !slices.Equal(d.Volumes, []Epoch{epochOf("b"), epochOf("a")}) || !strings.Contains(d.Message, "writers of a, b could not") {
		t.Errorf("stopping %v: %s", d.Volumes, d.Message)
	}
	d = Decide(facts("b", "a").with(fencedLongAgo).with(func(f *Facts) { f.Armed = false }))
	if !strings.Contains(d.Message, "writers of a, b could not") || !strings.Contains(d.Message, "power it off") {
		t.Errorf("without a watchdog it says: %s", d.Message)
	}
	d = Decide(facts("b", "a").with(reserved).with(fencedLongAgo))
	if len(d.Volumes) != 2 || !strings.Contains(d.Message, "writers of a, b could not be stopped yet") {
		t.Errorf("stopping %v, all on disks that keep late writes out: %s", d.Volumes, d.Message)
	}
	d = Decide(facts("b", "a").with(firstReserved).with(fencedLongAgo))
	if len(d.Volumes) != 2 || !strings.Contains(d.Message, "writers of a could not") {
		t.Errorf("stopping %v, beside a disk that keeps late writes out: %s", d.Volumes, d.Message)
	}
}

func TestAnEpochBeginsOnlyUnderALeaseThatIsHeld(t *testing.T) {
	other := epochOf("v")
	other.Epoch.ID = "another"
	moved := epochOf("v")
	moved.Holding.Device = "253:5"
	beside := facts()
	beside.Open = []Epoch{{Volume: "w", Epoch: other.Epoch, Holding: moved.Holding}}
	for name, tc := range map[string]struct {
		f      *Facts
		e      Epoch
		reason ownership.Reason
		ok     bool
	}{
		"held":                            {facts(), epochOf("v"), ownership.LeaseHeld, true},
		"the same again":                  {facts("v"), epochOf("v"), ownership.LeaseHeld, true},
		"beside another volume":           {beside, epochOf("v"), ownership.LeaseHeld, true},
		"never renewed since the boot":    {facts().with(func(f *Facts) { f.Now, f.Renewed, f.Tried, f.Cleared = 5*s, 0, 0, 0 }), epochOf("v"), ownership.LeaseLapsed, false},
		"another epoch of it is open":     {facts("v"), other, ownership.Superseded, false},
		"it is open on another device":    {facts("v"), moved, ownership.Superseded, false},
		"fenced":                          {facts().with(fenced), epochOf("v"), Fenced, false},
		"fenced while it was open":        {facts("v").with(fenced), epochOf("v"), Fenced, false},
		"lapsed":                          {facts().with(silent(20 * s)), epochOf("v"), ownership.LeaseLapsed, false},
		"not renewed since the last word": {facts().with(func(f *Facts) { f.Cleared = f.Now }), epochOf("v"), ownership.LeaseLapsed, false},
		"ending":                          {facts().with(ending), epochOf("v"), Asked, false},
	} {
		t.Run(name, func(t *testing.T) {
			if refusal, reason := Admit(tc.f, tc.e); reason != tc.reason || (refusal == "") != tc.ok {
				t.Errorf("%s: %q", reason, refusal)
			}
		})
	}
}

func TestTheMachineIsResetInTimeWheneverTheGuardDiesAfterItsLastFeeding(t *testing.T) {
	const step, slept = 50 * time.Millisecond, Fresh - time.Millisecond
	for since := time.Duration(0); since < time.Minute; since += step {
		f := facts("v").with(silent(since))
		d := Decide(f)
		if d.Within != WatchdogAfter && d.Within != WatchdogSoon {
			t.Fatalf("the watchdog is set to %v", d.Within)
		}
		if since == 0 && d.Within != WatchdogAfter {
			t.Errorf("the watchdog of a node that was just heard of is set to %v", d.Within)
		}
		if last := since + slept + 2*d.Within; d.Feed && last >= ownership.SelfFenceAfter+ownership.SelfFenceMargin {
			t.Errorf("fed %v after the last renewal, the machine is reset after %v if the guard dies at the last moment", since+slept, last)
		}
	}
}

func TestPeersAreAskedWhileSomethingWritesAndTheAPIDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		f   *Facts
		ask bool
	}{
		"just renewed":           {facts("v"), false},
		"silent":                 {facts("v").with(silent(ownership.AwayAfter)), true},
		"silent since a moment":  {facts("v").with(silent(ownership.AwayAfter - s)), false},
		"exempted a moment ago":  {facts("v").with(silent(time.Minute)).with(exempt(s)), false},
		"exempted a while ago":   {facts("v").with(silent(time.Minute)).with(exempt(ownership.AwayAfter)), true},
		"answers are awaited":    {facts("v").with(silent(ownership.AwayAfter)).with(func(f *Facts) { f.Asking = true }), false},
		"nothing writes":         {facts().with(silent(ownership.AwayAfter)), false},
		"fenced":                 {facts("v").with(silent(ownership.AwayAfter)).with(fenced), false},
		"too late":               {facts("v").with(silent(ownership.SelfFenceAfter)), false},
		"there is no other node": {facts("v").with(silent(time.Minute)).with(func(f *Facts) { f.Sets = [][]string{{"n1"}} }), false},
	} {
		if d := Decide(tc.f); d.Ask != tc.ask {
			t.Errorf("%s: the guard asks its peers: %t", name, d.Ask)
		}
	}
}
