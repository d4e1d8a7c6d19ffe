package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"sigs.k8s.io/yaml"
)

const chart = "../../charts/berth"

// alert is a rule of the chart.
type alert struct {
	Name        string            `json:"alert"`
	Expression  string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) map[string]alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	text, err := os.ReadFile(chart + "/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, g := range file.Groups {
		for _, a := range g.Rules {
			if _, again := all[a.Name]; again {
				t.Errorf("alert %s is there twice", a.Name)
			}
			all[a.Name] = a
		}
	}
	return all
}

// begin is when the tests begin to look: a rate needs a past.
const begin = time.Hour

// firing returns what fires for a history, as Prometheus decides it: what has been there at each
// evaluation of the time that the alert waits.
func (a alert) firing(t *testing.T, h history) promql.Vector {
	t.Helper()
	wait, err := time.ParseDuration(a.For)
	if err != nil {
		t.Fatal(err)
	}
	fires := query(t, h, a.Expression, begin)
	for at := begin; at <= begin+wait; at += interval {
		now := query(t, h, a.Expression, at)
		fires = slices.DeleteFunc(fires, func(s promql.Sample) bool {
			return !slices.ContainsFunc(now, func(n promql.Sample) bool { return n.Metric.Hash() == s.Metric.Hash() })
		})
	}
	return fires
}

const claim = `namespace="shop",persistentvolumeclaim="db"`

// stories are for each alert a cluster in which it fires, and one in which it does not.
var stories = map[string]struct{ fires, quiet history }{
	"BerthAgentDown": {
		fires: history{}.always(`up{job="berth-agent",node="n1"}`, 0),
		quiet: history{}.always(`up{job="berth-agent",node="n1"}`, 1).always(`up{job="other",node="n1"}`, 0),
	},
	"BerthControllerDown": {
		fires: history{}.always(`up{job="berth-controller",pod="a"}`, 0),
		quiet: history{}.always(`up{job="berth-controller",pod="a"}`, 0).always(`up{job="berth-controller",pod="b"}`, 1),
	},
	"BerthDiskAgentDown": {
		fires: history{}.always(`up{job="berth-disk-agent",node="n1"}`, 0),
		quiet: history{}.always(`up{job="berth-disk-agent",node="n1"}`, 1).always(`up{job="berth-agent",node="n1"}`, 0),
	},
	"BerthDiskControllerDown": {
		// There may be no pod of them at all.
		fires: history{}.always(`up{job="berth-disk-agent",node="n1"}`, 0).always(`up{job="berth-disk-agent",node="n2"}`, 1),
		quiet: history{}.always(`up{job="berth-disk-agent",node="n1"}`, 1).
			always(`up{job="berth-disk-controller",pod="a"}`, 0).always(`up{job="berth-disk-controller",pod="b"}`, 1),
	},
	"BerthNoLeader": {
		// Another driver's controllers do not make up for it.
		fires: leading("berth-disk-controller", 0, 0).and(leading("berth-controller", 0, 1)),
		quiet: leading("berth-controller", 0, 1).and(leading("berth-disk-controller", 1, 0)),
	},
	"BerthAuthorityLost": {
		fires: history{}.always(`berth_authority_problem{pod="a",reason="AuthorityLost"}`, 1).always(`berth_authority_problem{pod="a",reason="AuthorityDamaged"}`, 0),
		quiet: history{}.always(`berth_authority_problem{pod="a",reason="AuthorityLost"}`, 0).always(`berth_authority_problem{pod="a",reason="AuthorityDamaged"}`, 0),
	},
	"BerthNodeNotReady": {
		fires: history{}.always(`berth_node_state{node="n1",state="Away"}`, 1),
		quiet: history{}.always(`berth_node_state{node="n1",state="Ready"}`, 1),
	},
	"BerthPoolsUnreadable": {
		fires: history{}.always(`berth_agent_pools_reporting{node="n1"}`, 0),
		// A moment is no reason.
		quiet: history{}.changing(`berth_agent_pools_reporting{node="n1"}`, func(at time.Duration) float64 {
			if at < begin+3*time.Minute {
				return 0
			}
			return 1
		}),
	},
	"BerthPoolNearlyFull":     {fires: pool(95), quiet: pool(85)},
	"BerthThinPoolFilling":    {fires: thin("data", 0.9), quiet: thin("data", 0.8)},
	"BerthThinPoolNearlyFull": {fires: thin("metadata", 0.96), quiet: thin("metadata", 0.9)},
	"BerthVolumeNotReady":     {fires: volume("Failed"), quiet: sharedDisk("Waiting")}, // which has an alert of its own
	"BerthSharedDiskWaits":    {fires: sharedDisk("Waiting"), quiet: sharedDisk("Ready").and(volume("Waiting"))},
	"BerthNoStandby":          {fires: standbys("pvc-4", 2, 0).and(standbys("pvc-5", 2, 2)), quiet: standbys("pvc-4", 2, 1).and(standbys("pvc-5", 0, 0))},
	"BerthGuardSilent":        {fires: history{}.always(`berth_guard_silent_seconds{node="n1"}`, 90), quiet: history{}.always(`berth_guard_silent_seconds{node="n1"}`, 8)},
	"BerthVolumeNotDeleted":   {fires: volume("Deleting"), quiet: volume("Failed")},
	"BerthOrphans": {
		fires: history{}.always(`berth_agent_orphaned_volumes{node="n1"}`, 0).always(`berth_agent_orphaned_snapshots{node="n1"}`, 1),
		quiet: history{}.always(`berth_agent_orphaned_volumes{node="n1"}`, 0).always(`berth_agent_orphaned_snapshots{node="n1"}`, 0),
	},
	"BerthDiskOperationsFail": {
		fires: history{}.growing(`berth_agent_disk_operation_seconds_count{node="n1",operation="Create",outcome="error"}`, 1),
		// A pool without room is the user's affair, and not the disk's.
		quiet: history{}.growing(`berth_agent_disk_operation_seconds_count{node="n1",operation="Create",outcome="no_space"}`, 1),
	},
	"BerthDiskOperationsSlow": {fires: operations("60", "+Inf"), quiet: operations("0.5", "+Inf", "60")},
	"BerthClaimNearlyFull": {
		fires: kubelet("bytes", 2).always(`berth_volume_capacity_bytes{volume="pvc-1",`+claim+`}`, 100),
		quiet: kubelet("bytes", 2), // of another driver
	},
	"BerthClaimOutOfInodes": {
		fires: inodes(2, 100).always(`berth_volume_capacity_bytes{volume="pvc-1",`+claim+`}`, 100),
		// A filesystem that makes inodes as it needs them says that it has none.
		quiet: inodes(0, 0).always(`berth_volume_capacity_bytes{volume="pvc-1",`+claim+`}`, 100),
	},
}

func pool(used float64) history {
	return history{}.always(`berth_pool_bytes{node="n1",pool="vg0",use="berth"}`, used).
		always(`berth_pool_bytes{node="n1",pool="vg0",use="foreign"}`, 0).
		always(`berth_pool_bytes{node="n1",pool="vg0",use="free"}`, 100-used)
}

func thin(of string, filled float64) history {
	return history{}.always(`berth_thin_pool_filled_ratio{node="n1",pool="vg0/thin",of="`+of+`"}`, filled)
}

func volume(state string) history {
	return history{}.always(`berth_volume_state{job="berth-controller",volume="pvc-1",`+claim+`,state="`+state+`"}`, 1)
}

func sharedDisk(state string) history {
	return history{}.always(`berth_volume_state{job="berth-disk-controller",volume="pvc-4",`+claim+`,state="`+state+`"}`, 1)
}

func standbys(volume string, wanted, ready float64) history {
	of := `{job="berth-disk-controller",pod="a",volume="` + volume + `",` + claim + `}`
	return history{}.always(`berth_volume_standbys_wanted`+of, wanted).always(`berth_volume_standbys_ready`+of, ready)
}

func leading(job string, a, b float64) history {
	return history{}.always(`berth_controller_leading{job="`+job+`",pod="a"}`, a).always(`berth_controller_leading{job="`+job+`",pod="b"}`, b)
}

// operations grows the buckets of a histogram that are named, and no others.
func operations(grow ...string) history {
	h := history{}
	for _, le := range []string{"0.5", "60", "+Inf"} {
		each := 0.
		if slices.Contains(grow, le) {
			each = 1
		}
		h.growing(`berth_agent_disk_operation_seconds_bucket{node="n1",operation="Create",outcome="ok",le="`+le+`"}`, each)
	}
	return h
}

func kubelet(of string, left float64) history {
	return history{}.always(`kubelet_volume_stats_available_`+of+`{`+claim+`}`, left).always(`kubelet_volume_stats_capacity_`+of+`{`+claim+`}`, 100)
}

func inodes(left, all float64) history {
	return history{}.always(`kubelet_volume_stats_inodes_free{`+claim+`}`, left).always(`kubelet_volume_stats_inodes{`+claim+`}`, all)
}

var label = regexp.MustCompile(`\$labels\.(\w+)`)

func TestEveryAlertFiresWhenItShouldAndOnlyThen(t *testing.T) {
	all := alerts(t)
	for name := range stories {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no alert %s", name)
		}
	}
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			story, ok := stories[name]
			if !ok {
				t.Fatal("the alert has no story")
			}
			fires := a.firing(t, story.fires)
			if len(fires) != 1 {
				t.Fatalf("it fires %d times, want once: %v", len(fires), fires)
			}
			if quiet := a.firing(t, story.quiet); len(quiet) != 0 {
				t.Errorf("it fires without a reason: %v", quiet)
			}
			if a.Labels["severity"] == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
				t.Errorf("severity, summary or description is missing")
			}
			for _, text := range a.Annotations {
				for _, found := range label.FindAllStringSubmatch(text, -1) {
					if fires[0].Metric.Get(found[1]) == "" {
						t.Errorf("%q names label %s, which the alert does not have: %s", text, found[1], fires[0].Metric)
					}
				}
			}
		})
	}
}

func TestEveryAlertHasItsPartOfTheRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	all := alerts(t)
	explained := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## Berth"); ok {
			explained["Berth"+name] = true
			if _, ok := all["Berth"+name]; !ok {
				t.Errorf("docs/alerts.md explains %s, which is no alert", "Berth"+name)
			}
		}
	}
	for name := range all {
		if !explained[name] {
			t.Errorf("docs/alerts.md does not explain %s", name)
		}
	}
}
