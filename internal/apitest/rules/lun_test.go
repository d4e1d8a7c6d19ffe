package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	lunDiskImmutable = "spec.disk is immutable: delete the LUN, and make another one"
	lunShrinks       = "spec.capacity of a LUN cannot shrink"
	lunPositive      = "capacity of a LUN must be a positive whole number of bytes"
	lunPassedOn      = "a LUN does not go from one volume to another"
	lunReleased      = "a LUN stays Released until its disk is wiped: the disk may have a volume's data"
)

func newLUN(t *testing.T, change ...func(*v1alpha1.LUN)) *v1alpha1.LUN {
	l := &v1alpha1.LUN{Spec: v1alpha1.LUNSpec{
		Disk: v1alpha1.SharedDisk{Handle: diskHandle, Identity: diskIdentity}, Capacity: resource.MustParse("10Gi"), PoolClass: "san",
	}}
	l.Name = v1alpha1.VolumeName(t.Name())
	for _, c := range change {
		c(l)
	}
	return l
}

func lunOf(volume string, state v1alpha1.LUNState) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) {
		l.Status = v1alpha1.LUNStatus{State: state, Volume: &v1alpha1.LUNVolume{Name: volume, UID: "1"}}
	}
}

func lunSize(size string) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) { l.Spec.Capacity = resource.MustParse(size) }
}

func bare(l *v1alpha1.LUN) { l.Status = v1alpha1.LUNStatus{} }

// lunCases are changes of a LUN. One without a change is refused, or not, when it is made.
var lunCases = map[string]struct {
	made, status, change, changeStatus func(*v1alpha1.LUN)
	refusal                            string
}{
	"a LUN":                             {made: func(*v1alpha1.LUN) {}},
	"no capacity":                       {made: lunSize("0"), refusal: lunPositive},
	"half a byte":                       {made: lunSize("500m"), refusal: lunPositive},
	"no class":                          {made: func(l *v1alpha1.LUN) { l.Spec.PoolClass = "" }, refusal: "spec.poolClass"},
	"a class that is no name":           {made: func(l *v1alpha1.LUN) { l.Spec.PoolClass = "San 1" }, refusal: "spec.poolClass"},
	"a disk without an identity":        {made: func(l *v1alpha1.LUN) { l.Spec.Disk.Identity = "" }, refusal: "spec.disk.identity"},
	"it grows":                          {change: lunSize("11Gi")},
	"it shrinks":                        {change: lunSize("9Gi"), refusal: lunShrinks},
	"it becomes another disk":           {change: func(l *v1alpha1.LUN) { l.Spec.Disk.Identity = "naa.2" }, refusal: lunDiskImmutable},
	"it is put into another class":      {change: func(l *v1alpha1.LUN) { l.Spec.PoolClass = "slow" }},
	"a volume takes it":                 {status: bare, changeStatus: lunOf("v", v1alpha1.LUNBound)},
	"another volume takes it":           {status: lunOf("v", v1alpha1.LUNBound), changeStatus: lunOf("w", v1alpha1.LUNBound), refusal: lunPassedOn},
	"a volume of the same name":         {status: lunOf("v", v1alpha1.LUNBound), changeStatus: func(l *v1alpha1.LUN) { l.Status.Volume.UID = "2" }, refusal: lunPassedOn},
	"a volume gives it back":            {status: lunOf("v", v1alpha1.LUNBound), changeStatus: bare},
	"its volume is gone":                {status: lunOf("v", v1alpha1.LUNBound), changeStatus: lunOf("v", v1alpha1.LUNReleased)},
	"a released one gets a message":     {status: lunOf("v", v1alpha1.LUNReleased), changeStatus: func(l *v1alpha1.LUN) { l.Status.Message = "wipe it" }},
	"a released one is offered again":   {status: lunOf("v", v1alpha1.LUNReleased), changeStatus: bare, refusal: lunReleased},
	"a released one forgets its volume": {status: lunOf("v", v1alpha1.LUNReleased), changeStatus: func(l *v1alpha1.LUN) { l.Status.Volume = nil }, refusal: lunReleased},
	"a released one is bound again":     {status: lunOf("v", v1alpha1.LUNReleased), changeStatus: lunOf("v", v1alpha1.LUNBound), refusal: lunReleased},
	"an endless message":                {status: bare, changeStatus: func(l *v1alpha1.LUN) { l.Status.Message = strings.Repeat("a", 1025) }, refusal: "status.message"},
}

func TestALUNGoesFromOneVolumeToNoOther(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range lunCases {
		t.Run(name, func(t *testing.T) {
			l := newLUN(t)
			if tc.made != nil {
				tc.made(l)
				expect(t, env.Client.Create(t.Context(), l), tc.refusal)
				return
			}
			if err := env.Client.Create(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				tc.change(l)
				expect(t, env.Client.Update(t.Context(), l), tc.refusal)
				return
			}
			tc.status(l)
			if err := env.Client.Status().Update(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			tc.changeStatus(l)
			expect(t, env.Client.Status().Update(t.Context(), l), tc.refusal)
		})
	}
}
