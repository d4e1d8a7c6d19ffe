package trim

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
)

const (
	hour = time.Hour
	week = 168 * hour
)

// at is a moment of the volume "pvc-1", with a week between two.
var at = moment("pvc-1", week, time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC))

func volume(change ...func(*Volume)) Volume {
	v := Volume{ID: "pvc-1", Pool: "vg0/thin", Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, Interval: week}
	for _, c := range change {
		c(&v)
	}
	return v
}

func TestWhenAVolumeIsTrimmed(t *testing.T) {
	in := func(pool string) func(*Volume) { return func(v *Volume) { v.Pool = pool } }
	as := func(fs v1alpha1.FSType) func(*Volume) { return func(v *Volume) { v.FSType = fs } }
	long := Kept{Since: at.Add(-5 * week)}
	trimmed := func(ago time.Duration) Kept { return Kept{Since: at.Add(-9 * week), Trimmed: at.Add(-ago)} }
	for name, tc := range map[string]struct {
		volume Volume
		kept   Kept
		rests  time.Duration // after the volume's moment
		now    time.Duration // after the volume's moment
		verb   decide.Verb
		reason string
	}{
		"its class has no interval":                                    {volume: volume(func(v *Volume) { v.Interval = 0 }), kept: long, verb: decide.None, reason: ReasonNotAsked},
		"it is a raw block volume":                                     {volume: volume(func(v *Volume) { v.Mode, v.FSType = v1alpha1.Block, "" }), kept: long, verb: decide.None, reason: ReasonNothingGained},
		"it is a dataset":                                              {volume: volume(in("zfs:tank"), as(v1alpha1.Dataset)), kept: long, verb: decide.None, reason: ReasonNothingGained},
		"it is ext4 on a zvol":                                         {volume: volume(in("zfs:tank")), kept: long, verb: decide.None, reason: ReasonNothingGained},
		"it is a subvolume":                                            {volume: volume(in("btrfs:data"), as(v1alpha1.Subvolume)), kept: long, verb: decide.None, reason: ReasonNothingGained},
		"it is in a volume group":                                      {volume: volume(in("vg0")), kept: long, verb: Trim, reason: ReasonDue},
		"it is xfs on a whole disk":                                    {volume: volume(in("disk:wwn-1"), as(v1alpha1.XFS)), kept: long, verb: Trim, reason: ReasonDue},
		"nothing is kept about it":                                     {volume: volume(), verb: Note, reason: ReasonNew},
		"it was noted in the future":                                   {volume: volume(), kept: Kept{Since: at.Add(hour)}, verb: Note, reason: ReasonClockWentBack},
		"it was trimmed in the future":                                 {volume: volume(), kept: trimmed(-hour), verb: Note, reason: ReasonClockWentBack},
		"it was noted after its moment":                                {volume: volume(), kept: Kept{Since: at.Add(hour)}, now: 2 * hour, verb: decide.None, reason: ReasonNotDue},
		"it was noted at its moment":                                   {volume: volume(), kept: Kept{Since: at}, verb: decide.None, reason: ReasonNotDue},
		"it was noted just before its moment":                          {volume: volume(), kept: Kept{Since: at.Add(-time.Second)}, verb: Trim, reason: ReasonDue},
		"it was trimmed at its last moment":                            {volume: volume(), kept: trimmed(week), verb: Trim, reason: ReasonDue},
		"it was trimmed at its last moment, and it is before the next": {volume: volume(), kept: trimmed(week), now: -time.Second, verb: decide.None, reason: ReasonNotDue},
		"it was trimmed late, half an interval ago":                    {volume: volume(), kept: trimmed(week / 2), verb: Trim, reason: ReasonDue},
		"it was trimmed late, less than half an interval ago":          {volume: volume(), kept: trimmed(week/2 - 1), verb: decide.None, reason: ReasonNotDue},
		"it was so, and half an interval has passed by now":            {volume: volume(), kept: trimmed(week/2 - 1), now: hour, verb: decide.None, reason: ReasonNotDue},
		"it was not mounted at its moment":                             {volume: volume(), kept: trimmed(week), now: week - 1, verb: Trim, reason: ReasonDue},
		"it was not mounted for long":                                  {volume: volume(), kept: trimmed(9 * week), now: 3 * hour, verb: Trim, reason: ReasonDue},
		"it was trimmed just now":                                      {volume: volume(), kept: trimmed(-hour), now: hour, verb: decide.None, reason: ReasonNotDue},
		"it rests":                                                     {volume: volume(), kept: long, rests: 1, verb: decide.None, reason: ReasonResting},
		"it has rested":                                                {volume: volume(), kept: long, rests: hour, now: hour, verb: Trim, reason: ReasonDue},
		"its trim came to no end":                                      {volume: volume(), kept: Kept{Since: at.Add(-week), Next: Least}, verb: Trim, reason: ReasonDue},
	} {
		t.Run(name, func(t *testing.T) {
			var rests time.Time
			if tc.rests > 0 {
				rests = at.Add(tc.rests)
			}
			got := Decide(tc.volume, tc.kept, rests, at.Add(tc.now))
			if got.Verb != tc.verb || got.Reason != tc.reason || got.Message == "" {
				t.Errorf("%+v; want %s %s", got, tc.verb, tc.reason)
			}
		})
	}
}

func TestOfSeveralThatAreDueTheEarliestMomentIsTold(t *testing.T) {
	if a := Decide(volume(), Kept{Since: at.Add(-week)}, time.Time{}, at.Add(hour)); !a.Moment.Equal(at) {
		t.Errorf("its moment is %v; want %v", a.Moment, at)
	}
}

// A node looks once a minute, and trims what is due at once. In a year of weeks each volume is trimmed once a week.
func TestEachVolumeIsTrimmedOnceInEachInterval(t *testing.T) {
	v, kept, times := volume(), Kept{}, 0
	var last time.Time
	for now := at.Add(hour); now.Before(at.Add(52*week + 2*hour)); now = now.Add(time.Minute) {
		switch Decide(v, kept, time.Time{}, now).Verb {
		case Note:
			kept.Since = now
		case Trim:
			if times++; times > 1 && now.Sub(last) != week {
				t.Fatalf("trim %d came after %v", times, now.Sub(last))
			}
			kept.Trimmed, last = now, now
		}
	}
	if times != 52 {
		t.Errorf("it was trimmed %d times", times)
	}
}

// All volumes of a node were noted in the same minute, when their class got an interval.
func TestTheTrimsOfANodeAreSpreadOverTheInterval(t *testing.T) {
	const volumes, slots = 500, 10
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var counts [slots]int
	for n := range volumes {
		v := volume(func(v *Volume) { v.ID = fmt.Sprintf("pvc-00000000-0000-0000-0000-%012d", n) })
		for slot := range slots {
			if Decide(v, Kept{Since: start}, time.Time{}, start.Add(time.Duration(slot+1)*week/slots)).Verb == Trim {
				counts[slot]++
				break
			}
		}
	}
	all := 0
	for slot, count := range counts {
		all += count
		if count > 2*volumes/slots {
			t.Errorf("%d of %d volumes are due in part %d of %d of the interval", count, volumes, slot+1, slots)
		}
	}
	if all != volumes {
		t.Errorf("%d of %d volumes are due within the interval", all, volumes)
	}
}

func TestThePaceOfATrimFollowsItsParts(t *testing.T) {
	for name, tc := range map[string]struct {
		length int64
		took   time.Duration
		want   int64
	}{
		"a part that took moments is followed by a larger one": {First, time.Millisecond, 2 * First},
		"a part that took long is followed by a smaller one":   {First, 2 * time.Second, First / 2},
		"a part in between is followed by one of its size":     {First, 500 * time.Millisecond, First},
		"the smallest part is followed by no smaller one":      {Least, time.Minute, Least},
		"the largest part is followed by no larger one":        {most, 0, most},
	} {
		if got := Pace(tc.length, tc.took); got != tc.want || got%Least != 0 {
			t.Errorf("%s: %d; want %d", name, got, tc.want)
		}
	}
}

func TestATrimGoesOnAtTheBeginningOfAGroupOfBlocks(t *testing.T) {
	for next, want := range map[int64]int64{0: 0, Least: Least, 5*Least + 1: 5 * Least, -Least - 1: 0, -1: 0} {
		if got := From(Kept{Next: next}); got != want {
			t.Errorf("after %d: from %d; want %d", next, got, want)
		}
	}
}
