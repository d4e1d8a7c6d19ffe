package holders

import "testing"

func TestOnlyPodsOfOthersMayBeKilled(t *testing.T) {
	const guard, agent = "/kubepods.slice/burstable/pod-guard/one", "/kubepods.slice/burstable/pod-agent/one"
	k := &Kernel{pods: "/kubepods.slice", own: guard, agent: func() string { return agent }}
	for cgroup, may := range map[string]bool{
		"/kubepods.slice/burstable/pod-a/one":        true,
		"/kubepods.slice/burstable/pod-a/one/nested": true,
		"/kubepods.slice/burstable/pod-agent-b/one":  true,
		guard:                                 false,
		agent:                                 false,
		"/kubepods.slice/burstable/pod-guard": false,
		"/kubepods.slice/burstable/pod-agent/poold":    false,
		"/kubepods.slice/burstable":                    false,
		"/kubepods.slice":                              false,
		"/kubepods.slice-of-another/pod":               false,
		"/system.slice/kubelet.service":                false,
		"/":                                            false,
		"/../kubepods.slice/pod":                       false,
		"/kubepods.slice/pod-a/../../system.slice/one": false,
	} {
		if k.isTenant(cgroup) != may {
			t.Errorf("%s may be killed: %v", cgroup, !may)
		}
	}
}

func TestTheControlGroupOfAllPodsIsFoundFromOnePods(t *testing.T) {
	for own, want := range map[string]string{
		"/kubepods.slice/kubepods-burstable.slice/pod1/cri-1.scope":           "/kubepods.slice",
		"/kubepods/besteffort/pod1/1":                                         "/kubepods",
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/1": "/kubelet.slice/kubelet-kubepods.slice",
		"/system.slice/berth.service":                                         "",
		"/":                                                                   "",
	} {
		got, err := podsOf(own)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("from %s: %q, %v", own, got, err)
		}
	}
}

func TestAProcessIsToldByWhenItBeganWhateverItsNameIs(t *testing.T) {
	if began, err := started("/proc/self"); err != nil || began == "" || began == "0" {
		t.Errorf("%q, %v", began, err)
	}
	if hexadecimal("253:4") != "fd:04" || hexadecimal("nothing") != "" {
		t.Error("a device's number is written in another way than the kernel's")
	}
}
