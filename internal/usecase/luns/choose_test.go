package luns

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

func persistent(is bool) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) { l.Spec.Persistent = is }
}

func TestTheSmallestLUNThatFitsIsChosen(t *testing.T) {
	leaving := func(l *v1alpha1.LUN) { l.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	as := func(number string) func(*v1alpha1.LUN) { return func(l *v1alpha1.LUN) { l.Spec.Disk = disk(number) } }
	sameIdentity := func(l *v1alpha1.LUN) { l.Spec.Disk.Identity = "NAA.a" }
	for name, tc := range map[string]struct {
		wish    wish
		luns    []*v1alpha1.LUN
		volumes []*v1alpha1.Volume
		want    string
		short   string // part of the message
	}{
		"of several the smallest": {luns: []*v1alpha1.LUN{lun("c", 3*gi), lun("b", 2*gi), lun("a", 4*gi)}, want: "b"},
		"of equal ones the first": {luns: []*v1alpha1.LUN{lun("b", 2*gi), lun("a", 2*gi)}, want: "a"},
		"none that is too small":  {luns: []*v1alpha1.LUN{lun("a", gi-1), lun("b", 5*gi)}, want: "b"},
		"none over the limit":     {wish: wish{limit: 2 * gi}, luns: []*v1alpha1.LUN{lun("a", 3*gi)}, short: "1 over the limit"},
		"one of just the size":    {wish: wish{limit: gi}, luns: []*v1alpha1.LUN{lun("a", gi)}, want: "a"},
		"none that forgets, if several nodes write": {
			wish: wish{persistent: true}, luns: []*v1alpha1.LUN{lun("a", gi, persistent(false)), lun("b", 2*gi, persistent(true))}, want: "b",
		},
		"all of them forget":         {wish: wish{persistent: true}, luns: []*v1alpha1.LUN{lun("a", gi, persistent(false))}, short: "1 without reservations that persist"},
		"none of another class":      {luns: []*v1alpha1.LUN{lun("a", gi, func(l *v1alpha1.LUN) { l.Spec.PoolClass = "slow" })}, short: `no LUN has spec.poolClass "san"`},
		"none that a volume has":     {luns: []*v1alpha1.LUN{lun("a", gi, of(volume("v", "a"))), lun("b", 2*gi)}, want: "b"},
		"none that was a volume's":   {luns: []*v1alpha1.LUN{lun("a", gi, isReleased)}, short: "1 released"},
		"none that is being deleted": {luns: []*v1alpha1.LUN{lun("a", gi, leaving)}, short: "1 being deleted"},
		"none whose handle a Volume names, whatever it says of the identity": {
			luns: []*v1alpha1.LUN{lun("a", gi)}, volumes: []*v1alpha1.Volume{func() *v1alpha1.Volume {
				v := volume("hand", "a")
				v.Spec.Replication.Attachments.Disk.Identity = "naa.other"
				return v
			}()}, short: "1 named twice",
		},
		"none whose identity a Volume names, at whatever handle": {
			luns: []*v1alpha1.LUN{lun("a", gi)}, volumes: []*v1alpha1.Volume{func() *v1alpha1.Volume {
				v := volume("hand", "a")
				v.Spec.Replication.Attachments.Disk.Handle = "iscsi://10.0.0.6/iqn.2026-01.com.example:array/7"
				return v
			}()}, short: "1 named twice",
		},
		"none whose unit a Volume names by another portal and another identity": {
			luns: []*v1alpha1.LUN{lun("a", gi)}, volumes: []*v1alpha1.Volume{func() *v1alpha1.Volume {
				v := volume("hand", "a")
				*v.Spec.Replication.Attachments.Disk = inOtherWords("a")
				return v
			}()}, short: "1 named twice",
		},
		"neither of two LUNs that are one unit in other words": {
			luns: []*v1alpha1.LUN{lun("a", gi), lun("b", gi, func(l *v1alpha1.LUN) { l.Spec.Disk = inOtherWords("a") })}, short: "2 named twice",
		},
		"a Volume without a disk names none":         {luns: []*v1alpha1.LUN{lun("a", gi)}, volumes: []*v1alpha1.Volume{volume("v", "")}, want: "a"},
		"neither of two LUNs that are one disk":      {luns: []*v1alpha1.LUN{lun("a", gi), lun("b", gi, as("a"))}, short: "2 named twice"},
		"neither of two LUNs with one identity":      {luns: []*v1alpha1.LUN{lun("a", gi), lun("b", gi, sameIdentity)}, short: "2 named twice"},
		"the message counts all that is in the way":  {luns: []*v1alpha1.LUN{lun("a", gi, isReleased), lun("b", 1), lun("c", gi, of(volume("v", "c")))}, short: "of its 3 LUNs: 1 in use, 1 released and not wiped yet (kubectl get luns -o wide), 1 too small"},
		"without a LUN the administrator is told so": {short: `no LUN has spec.poolClass "san"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.wish
			w.poolClass, w.bytes = "san", gi
			got, short := choose(w, values(tc.luns...), values(tc.volumes...))
			switch {
			case (got == nil) != (tc.want == ""), got != nil && got.Name != tc.want:
				t.Errorf("got %+v, want %q", got, tc.want)
			case !strings.Contains(short, tc.short), (short == "") != (got != nil):
				t.Errorf("it says %q", short)
			}
		})
	}
}

func TestTheStateOfALUNFollowsFromItsVolume(t *testing.T) {
	v, reworded := volume("v", "a"), volume("v", "a")
	*reworded.Spec.Replication.Attachments.Disk = inOtherWords("a")
	for name, tc := range map[string]struct {
		lun     *v1alpha1.LUN
		holder  *v1alpha1.Volume
		volumes []*v1alpha1.Volume
		luns    []*v1alpha1.LUN
		state   v1alpha1.LUNState
		has     string
		says    string
	}{
		"a new one":                                      {lun: lun("a", gi), state: v1alpha1.LUNAvailable},
		"its volume has the disk":                        {lun: lun("a", gi, of(v)), holder: v, volumes: []*v1alpha1.Volume{v}, state: v1alpha1.LUNBound, has: "v"},
		"its volume has no disk yet":                     {lun: lun("a", gi, of(v)), holder: volume("v", ""), state: v1alpha1.LUNBound, has: "v"},
		"its volume has another disk":                    {lun: lun("a", gi, of(v)), holder: volume("v", "b"), state: v1alpha1.LUNAvailable},
		"its volume is gone":                             {lun: lun("a", gi, of(v)), state: v1alpha1.LUNReleased, has: "v", says: "blkdiscard"},
		"it was released":                                {lun: lun("a", gi, of(v), isReleased), holder: v, state: v1alpha1.LUNReleased, has: "v", says: "blkdiscard"},
		"it was released, and names no volume":           {lun: lun("a", gi, isReleased), state: v1alpha1.LUNReleased, says: "blkdiscard"},
		"a Volume that was made by hand names it":        {lun: lun("a", gi), volumes: []*v1alpha1.Volume{volume("hand", "a")}, state: v1alpha1.LUNBound, has: "hand"},
		"two Volumes name it":                            {lun: lun("a", gi), volumes: []*v1alpha1.Volume{volume("x", "a"), volume("hand", "a")}, state: v1alpha1.LUNBound, has: "hand", says: "Volume x names this disk, too"},
		"another Volume names what its volume has":       {lun: lun("a", gi, of(v)), holder: v, volumes: []*v1alpha1.Volume{v, volume("hand", "a")}, state: v1alpha1.LUNBound, has: "v", says: "Volume hand names this disk, too"},
		"another LUN names the same unit in other words": {lun: lun("a", gi), luns: []*v1alpha1.LUN{lun("b", gi, func(l *v1alpha1.LUN) { l.Spec.Disk = inOtherWords("a") })}, state: v1alpha1.LUNUnavailable, says: "LUN b"},
		"a Volume has its disk by other words":           {lun: lun("a", gi, of(v)), holder: reworded, volumes: []*v1alpha1.Volume{reworded}, state: v1alpha1.LUNBound, has: "v"},
		"another LUN names the same disk":                {lun: lun("a", gi), luns: []*v1alpha1.LUN{lun("b", gi, func(l *v1alpha1.LUN) { l.Spec.Disk = disk("a") })}, state: v1alpha1.LUNUnavailable, says: "LUN b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.lun, &Facts{Holder: tc.holder, Volumes: values(tc.volumes...), LUNs: append(values(tc.luns...), *tc.lun)})
			has := ""
			if got.Volume != nil {
				has = got.Volume.Name
			}
			if got.State != tc.state || has != tc.has || !strings.Contains(got.Message, tc.says) || (tc.says == "") != (got.Message == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
