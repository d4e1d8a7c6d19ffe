package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/quarantine"
)

// ruins is the cluster of darkroom, in which the record of the lost volume names its claim.
func ruins(t *testing.T) client.Client {
	t.Helper()
	c := darkroom(t)
	n := &v1alpha1.StorageNode{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "node-3"}, n); err != nil {
		t.Fatal(err)
	}
	n.Status.Pools[0].Inventory[0].Orphan.Claim = "shop/db"
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAllDataIsAdoptedAsThePlanSays(t *testing.T) {
	c := ruins(t)
	plan, _, err := say(t, c, "adopt", "--all")
	want := "ACTION  NODE    NAME                                       CLAIM\n" +
		"Adopt   node-3  " + lost + "   shop/db\nAdopt   node-3  " + photo + "  -\n"
	if diff := cmp.Diff(want, plan); !errors.Is(err, errUnconfirmed) || diff != "" {
		t.Error(err, diff)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: lost}, &v1alpha1.Volume{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the plan alone made a Volume: %v", err)
	}
	done, _, err := say(t, c, "adopt", "--all", "--yes", "--storage-class", "local")
	want = strings.ReplaceAll(strings.Replace(want, "ACTION  ", "ACTION   ", 1), "Adopt   ", "Adopted  ")
	if diff := cmp.Diff(want, done); err != nil || diff != "" {
		t.Error(err, diff)
	}
	pv := &corev1.PersistentVolume{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: lost}, pv); err != nil || pv.Spec.ClaimRef.Name != "db" || pv.Spec.StorageClassName != "local" {
		t.Errorf("%v: %+v", err, pv.Spec)
	}
	again, _, err := say(t, c, "adopt", "--all", "--yes", "-o", "json")
	var steps []quarantine.Step
	if err != nil || json.Unmarshal([]byte(again), &steps) != nil || len(steps) != 2 || steps[0].Action != decide.None {
		t.Errorf("%v: %s", err, again)
	}
}

func TestWhatIsAmbiguousIsRefusedWithTheReason(t *testing.T) {
	out, _, err := say(t, wreck(t), "adopt", "--all", "--yes", "--node", "node-3")
	want := "ACTION  NODE    NAME                                      CLAIM\nRefuse  node-3  " + lost + "  -\n\n" + lost + " on node node-3:\n" +
		"  the record beside the data names no claim: kubectl berth adopt node-3 " + lost + " --claim NAMESPACE/NAME\n"
	if diff := cmp.Diff(want, out); err == nil || !strings.Contains(err.Error(), "1 are refused") || diff != "" {
		t.Error(err, diff)
	}
	if out, _, err := say(t, wreck(t), "adopt", "--all", "--node", "node-1"); err != nil || out != "There is no data to adopt.\n" {
		t.Errorf("%v: %s", err, out)
	}
	for told, args := range map[string][]string{
		"--yes is for --all":             {"adopt", "node-3", lost, "--yes"},
		"--node is for --all":            {"adopt", "node-3", lost, "--node", "n"},
		"unknown command":                {"adopt", "--all", "node-3"},
		"[all claim] were all set":       {"adopt", "--all", "--claim", "db"},
		`"xml" is none of wide, json an`: {"adopt", "--all", "-o", "xml"},
	} {
		if _, _, err := say(t, wreck(t), args...); err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
