package apitest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Grant gives accounts of Berth, such as agent, the role of the chart that ends in a word, such as certificates:
// what the chart renders to with all its parts.
func (e *Environment) Grant(t testing.TB, role string, accounts ...string) {
	t.Helper()
	chart, err := chartDir()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(chart, "..", "..", "test", "chart", "testdata", "everything.golden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(bytes.ReplaceAll(text, []byte("other-"), []byte("berth-"))), 4096)
	var subjects []rbacv1.Subject
	for _, a := range accounts {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: "berth-" + a})
	}
	var made []client.Object
	for {
		var o struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
		}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Name != "berth-"+role {
			continue
		}
		meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: "chart-" + o.Name + "-" + accounts[0]}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: o.Kind, Name: meta.Name}
		switch o.Kind {
		case "ClusterRole":
			made = append(made, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: o.Rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		case "Role":
			made = append(made, &rbacv1.Role{ObjectMeta: meta, Rules: o.Rules}, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		}
	}
	if len(made) == 0 {
		t.Fatalf("the chart has no role %s", role)
	}
	for _, o := range made {
		if err := client.IgnoreAlreadyExists(e.Client.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
}
