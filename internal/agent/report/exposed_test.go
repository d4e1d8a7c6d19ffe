package report

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestANodeThatReadsTheDevicesOfPodsSaysSo(t *testing.T) {
	s := seen(pool("vg0"))
	if got := Describe(facts(nil), s); len(got.Conditions) != 1 {
		t.Errorf("without a warning the conditions are %+v", got.Conditions)
	}
	s.Warnings = []provision.Warning{
		{Reason: v1alpha1.ReasonVolumeGroupOfPod, Message: "volume group evil on /dev/loop5"},
		{Reason: v1alpha1.ReasonLVMReadsPodDevices, Message: "the machine's own LVM reads /dev/loop0"},
	}
	got := Describe(facts(nil), s).Conditions
	if len(got) != 2 {
		t.Fatalf("conditions %+v", got)
	}
	c := got[1]
	if c.Type != v1alpha1.ConditionExposed || c.Status != "True" || c.Reason != v1alpha1.ReasonVolumeGroupOfPod || !strings.Contains(c.Message, "evil") || !strings.Contains(c.Message, "/dev/loop0") {
		t.Errorf("condition %+v", c)
	}
}
