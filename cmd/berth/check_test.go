package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/check"
)

func TestACheckWaitsForTheInstallationAndNamesWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := clientscheme.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "berth-controller"}}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment).Build()
		f := &checkFlags{Installation: check.Installation{Namespace: "ns", Name: "berth"}, timeout: time.Minute}
		var out bytes.Buffer
		if err := awaitNoProblems(t.Context(), c, f, &out); err == nil || !strings.Contains(err.Error(), "asking for the agents") {
			t.Errorf("without agents the error is %v", err)
		}
		agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "berth-agent"}}
		agents.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"agent": "yes"}}
		if err := c.Create(t.Context(), agents); err != nil {
			t.Fatal(err)
		}
		if err := awaitNoProblems(t.Context(), c, f, &out); err == nil || !strings.Contains(err.Error(), "no node runs an agent") {
			t.Errorf("with agents on no node the error is %v", err)
		}
		for what, ask := range map[string]func(*check.Installation){
			"asking for the guards":           func(i *check.Installation) { i.Guard = true },
			"asking for the disk controllers": func(i *check.Installation) { i.Disk = true },
		} {
			f := *f
			ask(&f.Installation)
			if err := awaitNoProblems(t.Context(), c, &f, &out); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("the error is %v, want %s", err, what)
			}
		}
	})
}
