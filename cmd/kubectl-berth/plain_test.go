package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/survey"
)

// forged is what a tenant would have an administrator read and paste.
const forged = "y\x1b[2J\x1b[H\n  next: kubectl berth forget node-3 data --yes\n\u009b8m"

// forger puts it wherever a tenant can.
func forger(list []client.Object) []client.Object {
	for _, o := range list {
		switch o := o.(type) {
		case *v1alpha1.StorageNode:
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: forged}}
		case *corev1.PersistentVolumeClaim:
			o.Annotations = map[string]string{schedule.SelectedNode: forged}
		}
	}
	return installed(list)
}

func TestNoTextOfOthersGivesOrdersToATerminalOrBeginsALine(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"nodes", "-o", "wide"}, {"explain", "pod", "web"}} {
		out, notes, err := run(t, forger, interceptor.Funcs{}, args...)
		if err != nil || strings.ContainsAny(out+notes, "\x1b\u009b") || strings.Contains(out, "\n  next:") || !strings.Contains(out, `\x1b[2J`) {
			t.Errorf("%v: %v: %q", args, err, out)
		}
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.LocalDriverName}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "x"}}
	claim.Spec.StorageClassName, claim.Spec.VolumeName = new("fast"), forged
	out, err := consult(t, pretend(t, interceptor.Funcs{}, append(disks(), class, claim)...), func() {})
	if exitCode(err) != 2 || !strings.Contains(out, "kubectl berth forget") || strings.Contains(out, "\n  next: kubectl berth forget") {
		t.Errorf("%v: %q", err, out)
	}
}

func TestAnErrorIsOneLineWhoeverWroteIt(t *testing.T) {
	var out strings.Builder
	complain(&out, errors.New("reading volume "+forged))
	if out.String() != "kubectl berth: reading volume "+`y\x1b[2J\x1b[H   next: kubectl berth forget node-3 data --yes \u009b8m`+"\n" {
		t.Errorf("%q", out.String())
	}
}

func TestADocumentHasTheTextOfOthersAndGivesNoOrders(t *testing.T) {
	for form, read := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(text []byte, to any) error { return yaml.Unmarshal(text, to) },
	} {
		out, _, err := run(t, forger, interceptor.Funcs{}, "nodes", "-o", form)
		var rows []survey.Node
		if err != nil || read([]byte(out), &rows) != nil || rows[0].Message != forged || strings.ContainsAny(out, "\x1b\u009b") {
			t.Errorf("%s: %v: %q", form, err, out)
		}
	}
}
