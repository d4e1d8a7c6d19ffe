package main

import (
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/test/scrape"
)

// writes are the requests that change something, by verb and resource. Leases are
// left out: the API server writes its own all the time.
func writes(from scrape.Families) scrape.Counts {
	return from.Sum("apiserver_request_total", func(of map[string]string) string {
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, of["verb"]) || of["resource"] == "leases" {
			return ""
		}
		if of["subresource"] != "" {
			return of["verb"] + " " + of["resource"] + "/" + of["subresource"]
		}
		return of["verb"] + " " + of["resource"]
	})
}

// batching are the scheduler's counts of opportunistic batching.
func batching(from scrape.Families) scrape.Counts {
	return from.Sum("scheduler_batch_attempts_total", func(of map[string]string) string { return of["result"] })
}

// calls are how often a plugin of Berth's was called, by plugin and phase; and,
// of the sample that the scheduler times, how often it skipped.
func calls(from scrape.Families) scrape.Counts {
	called := func(of map[string]string) string {
		if !strings.HasPrefix(of["plugin"], "Berth") {
			return ""
		}
		return of["plugin"] + " " + of["extension_point"]
	}
	all := from.Sum("scheduler_plugin_evaluation_total", called)
	maps.Copy(all, from.Sum("scheduler_plugin_execution_duration_seconds", func(of map[string]string) string {
		if called(of) == "" {
			return ""
		}
		return "timed " + called(of) + " " + of["status"]
	}))
	return all
}
