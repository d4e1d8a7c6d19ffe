package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/internal/survey"
)

// installed adds Berth's programs to a cluster.
func installed(list []client.Object) []client.Object {
	meta := func(component string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "berth-system", Name: "berth-" + component, Labels: map[string]string{
			nameLabel: "berth", "app.kubernetes.io/component": component, "app.kubernetes.io/version": "0.1.0",
		}}
	}
	for _, component := range []string{"controller", "disk-controller"} {
		d := &appsv1.Deployment{ObjectMeta: meta(component)}
		d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas = 2, 2, 2
		list = append(list, d)
	}
	for component, updated := range map[string]int32{"agent": 1, "disk-agent": 2, "guard": 0} {
		d := &appsv1.DaemonSet{ObjectMeta: meta(component)}
		d.Status.DesiredNumberScheduled, d.Status.NumberReady, d.Status.UpdatedNumberScheduled = 2, 2, updated
		list = append(list, d)
	}
	return list
}

func TestEachViewIsATableThatOtherProgramsCanReadToo(t *testing.T) {
	for command, want := range map[string]string{
		"nodes": `NAME   STATE     POOLS  SIZE  USED  VOLUMES  ORPHANS
large  NotReady  1      20Gi  0%    0        0
small  NotReady  1      4Gi   75%   1        0
`,
		"pools": `NODE   NAME  TYPE  HEALTH   SIZE  USED  FILLED  VOLUMES
large  vg0   LVM   Healthy  20Gi  0%    -       0
small  vg0   LVM   Healthy  4Gi   75%   -       1
`,
	} {
		out, notes, err := run(t, same, interceptor.Funcs{}, command)
		if err != nil || notes != "" {
			t.Fatalf("%s: %v, %s", command, err, notes)
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
		var rows []map[string]any
		out, _, err = run(t, same, interceptor.Funcs{}, command, "-o", "json")
		if err != nil || json.Unmarshal([]byte(out), &rows) != nil || len(rows) != 2 {
			t.Errorf("%s as json: %v, %s", command, err, out)
		}
	}
	wide, _, err := run(t, same, interceptor.Funcs{}, "volumes", "-o", "wide")
	if err != nil || !strings.HasPrefix(wide, "NAMESPACE") || !strings.Contains(wide, "vg0") {
		t.Errorf("volumes: %v, %s", err, wide)
	}
}

func TestTheStatusListsProblemsAndIsADocumentToo(t *testing.T) {
	out, _, err := run(t, installed, interceptor.Funcs{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{"controllers       2 of 2 ready", "guards            2 of 2 ready", "nodes             0 of 2 ready", "3 problems:", "node large is NotReady: its agent has not reported yet"} {
		if !strings.Contains(out, told) {
			t.Errorf("%q lacks %q", out, told)
		}
	}
	document, _, err := run(t, installed, interceptor.Funcs{}, "status", "-o", "yaml")
	var s survey.Status
	if err != nil || yaml.UnmarshalStrict([]byte(document), &s) != nil || len(s.Problems) != 3 {
		t.Errorf("%v: %s", err, document)
	}
	if out, _, err := run(t, same, interceptor.Funcs{}, "status"); err != nil || !strings.Contains(out, "is Berth installed in another one?") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheStatusTellsThatTheProgramsOfSharedDisksAreDown(t *testing.T) {
	out, _, err := run(t, func(list []client.Object) []client.Object {
		list = installed(list)
		for _, o := range list {
			switch d := o.(type) {
			case *appsv1.Deployment:
				d.Status.ReadyReplicas = 0
			case *appsv1.DaemonSet:
				d.Status.NumberReady = 0
			}
		}
		return list
	}, interceptor.Funcs{}, "status")
	for _, told := range []string{"0 of 2 disk controllers are ready", "0 of 2 disk agents are ready", "0 of 2 guards are ready"} {
		if err != nil || !strings.Contains(out, told) {
			t.Errorf("%v: %q lacks %q", err, out, told)
		}
	}
}

func TestTheStatusOfManyProblemsFitsOnAScreen(t *testing.T) {
	s := survey.Status{Problems: make([]string, 40)}
	var short, long strings.Builder
	if err := writeStatus(&short, s, false); err != nil {
		t.Fatal(err)
	}
	if err := writeStatus(&long, s, true); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(short.String(), "\n"); n > 24 || !strings.Contains(short.String(), "and 28 more") {
		t.Errorf("%d lines: %s", n, short.String())
	}
	if n := strings.Count(long.String(), "\n"); n < 40 {
		t.Errorf("the whole list has %d lines", n)
	}
}

func TestTheVersionsOfTheClusterAreCompared(t *testing.T) {
	out, _, err := run(t, installed, interceptor.Funcs{}, "version")
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{"kubectl-berth     devel", "controllers       0.1.0", "disk agents       0.1.0", "guards            0.1.0", "1 of 2 agents run the newest version",
		"2 of 2 guards run an older version of their DaemonSet"} {
		if !strings.Contains(out, told) {
			t.Errorf("%q lacks %q", out, told)
		}
	}
	out, _, err = run(t, same, interceptor.Funcs{}, "version", "--client", "-o", "json")
	if err != nil || strings.Contains(out, "controllers") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAnUnknownFormIsRefused(t *testing.T) {
	for _, command := range []string{"status", "nodes", "pools", "volumes", "version"} {
		if _, _, err := run(t, same, interceptor.Funcs{}, command, "-o", "xml"); err == nil || !strings.Contains(err.Error(), "none of wide, json and yaml") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
