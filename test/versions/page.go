package main

import (
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/test/figures"
)

// promised are the versions of Kubernetes that the chart is for. On newest, the lab's own, all suites run.
var (
	promised = []string{"1.37", "1.36", "1.35", "1.34"}
	newest   = promised[0]
)

const head = `# Versions of Kubernetes

The numbers are of tests that passed on a release of that version. ` + "`make test-versions`" + ` runs them and
writes this page.

`

const between = `
- **rules, controllers, agents**: each rule of the definitions and of the admission policies is tried, and the
  controllers and agents work, on an API server of that version. The number includes the tests of their
  decisions, which need no API server.
- **volumes**: a cluster of that version, its kubelet included, installs the chart, and volumes, snapshots and
  clones live and die in it.
- **berth-scheduler**: that of the version places pods on an API server of the version.
- **compiled**: every rule of the definitions and of the admission policies compiles with the functions that
  this version has, and the chart renders for it. No run on its API server is on record.

## Values of the chart

`

const tail = `
Where Helm refuses a value, it says why, and changes nothing.

A scheduler must not be newer than its API server, so the chart takes the image for its cluster's version.
Older schedulers than 1.36 lack parts of the framework that Berth's plugins use; there any scheduler places
pods by what the nodes publish ([scheduling](scheduling.md)). The marker is a MutatingAdmissionPolicy, which
is stable from 1.36. All other suites of Berth, those of the extender in a cluster included, run on the newest
version alone.

Helm asks the cluster for its version. Where it renders without a cluster, as ` + "`helm template`" + ` and some tools
that deploy from Git do, give it the version with ` + "`--kube-version`" + `.
`

// render writes the page of the records, and of the values that the chart refuses, by minor version.
func render(all map[string]record, refused map[string][]string) string {
	var out strings.Builder
	out.WriteString(head)
	seen := &figures.Table{Head: []string{"Kubernetes", "release", "rules, controllers, agents", "volumes", "berth-scheduler"}}
	accepts := &figures.Table{Head: append([]string{"Kubernetes"}, values...)}
	for _, minor := range promised {
		if r, tried := all[minor]; tried {
			seen.Add(minor, strings.TrimPrefix(r.Kubernetes, "v"), strconv.Itoa(r.Passed.Rules), strconv.Itoa(r.Passed.Volumes), strconv.Itoa(r.Passed.Scheduler))
		} else {
			seen.Add(minor, "none", "compiled", "0", "0")
		}
		row := []string{minor}
		for _, v := range values {
			says := "accepted"
			if slices.Contains(refused[minor], v) {
				says = "refused"
			}
			row = append(row, says)
		}
		accepts.Add(row...)
	}
	seen.Print(&out)
	out.WriteString(between)
	accepts.Print(&out)
	out.WriteString(tail)
	return out.String()
}
