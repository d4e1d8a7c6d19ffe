package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/scrape"
)

const exposed = `# TYPE apiserver_request_total counter
apiserver_request_total{code="201",group="",resource="pods",subresource="binding",verb="POST"} 5
apiserver_request_total{code="409",group="",resource="pods",subresource="binding",verb="POST"} 1
apiserver_request_total{code="200",group="",resource="pods",subresource="",verb="LIST"} 7
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 9
apiserver_request_total{code="200",group="berth.dev",resource="volumes",subresource="status",verb="APPLY"} 3
# TYPE scheduler_batch_attempts_total counter
scheduler_batch_attempts_total{profile="p",result="hint_used"} 8
scheduler_batch_attempts_total{profile="p",result="no_hint"} 2
# TYPE scheduler_plugin_evaluation_total counter
scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="Berth",profile="p"} 10
scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeAffinity",profile="p"} 100
# TYPE scheduler_plugin_execution_duration_seconds histogram
scheduler_plugin_execution_duration_seconds_bucket{extension_point="PreFilter",plugin="Berth",status="Skip",le="+Inf"} 4
scheduler_plugin_execution_duration_seconds_sum{extension_point="PreFilter",plugin="Berth",status="Skip"} 0.1
scheduler_plugin_execution_duration_seconds_count{extension_point="PreFilter",plugin="Berth",status="Skip"} 4
`

func TestMetricsAreCountedByTheirLabels(t *testing.T) {
	from, err := scrape.Parse([]byte(exposed))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ got, want scrape.Counts }{
		"writes, those that failed too, and neither reads nor leases": {writes(from), scrape.Counts{"POST pods/binding": 6, "APPLY volumes/status": 3}},
		"batching by result":        {batching(from), scrape.Counts{"hint_used": 8, "no_hint": 2}},
		"calls of Berth's plugins":  {calls(from), scrape.Counts{"Berth PreFilter": 10, "timed Berth PreFilter Skip": 4}},
		"nothing of other families": {writes(nil), scrape.Counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
