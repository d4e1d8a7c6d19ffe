package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// Of a list an API server prints the first element only, so that a node with several pools
// seemed to have one.
func TestColumnsOfAStorageNodeShowAllItsPools(t *testing.T) {
	env := apitest.Start(t)
	n := storageNode(v1alpha1.VolumeName(t.Name()))
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status.Summary = &v1alpha1.StorageNodeSummary{Pools: "vg0 10Gi, vg1 Missing", LargestVolume: "3Gi"}
	if err := env.Agent(t, n.Name).Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(env.Config)
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	err = c.Get().Resource("storagenodes").Name(n.Name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(&table)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		shown[column.Name] = table.Rows[0].Cells[i]
	}
	want := map[string]any{"Pools": "vg0 10Gi, vg1 Missing", "Largest": "3Gi"}
	if diff := cmp.Diff(want, map[string]any{"Pools": shown["Pools"], "Largest": shown["Largest"]}); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
