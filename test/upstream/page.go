package main

import (
	"fmt"
	"strconv"
	"strings"

	"berth.dev/berth/test/figures"
)

// head begins the page.
const head = `# Kubernetes' own storage suite

Kubernetes has a suite of tests for drivers of CSI (` + "`test/e2e/storage/external`" + `), by which its
maintainers judge them. ` + "`make test-upstream`" + ` runs it on the lab, on pools of one kind after the other, and
writes this page. The files in ` + "`test/upstream/drivers`" + ` say what the driver can do with each kind of
pools. The suite chooses its specs by them, those that are slow, serial or disruptive included.

`

// render writes the page.
func render(all []result, skips []skip) string {
	var out strings.Builder
	out.WriteString(head)
	table := &figures.Table{Head: []string{"pools", "passed", "failed", "do not fit", "minutes"}}
	for i := range all {
		r := &all[i]
		table.Add(r.Pools, strconv.Itoa(r.Passed), strconv.Itoa(len(r.Failed)), strconv.Itoa(r.Unfit), fmt.Sprintf("%.0f", r.Took.Minutes()))
	}
	table.Print(&out)
	out.WriteString("\nA spec that does not fit looked at the driver or the cluster, and found that it has nothing to test there: a\n" +
		"raw block device of a driver without any, a second node in a cluster of one. The minutes are of\n" +
		"machines that differ, some of which had other work: they compare no pools.\n")
	failures := &figures.Table{Head: []string{"pools", "failed"}}
	for i := range all {
		for _, f := range all[i].Failed {
			failures.Add(all[i].Pools, f)
		}
	}
	if len(failures.Rows) > 0 {
		out.WriteString("\n## Specs that failed\n\n")
		failures.Print(&out)
	}
	if len(skips) == 0 {
		return out.String()
	}
	out.WriteString("\n## Specs that are not run\n\n")
	reasons := &figures.Table{Head: []string{"spec", "why"}}
	for _, k := range skips {
		reasons.Add("`"+k.pattern+"`", k.reason)
	}
	reasons.Print(&out)
	return out.String()
}
