package controlplane

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestTheServerOfNamesListensWherePodsAndKubeProxyAsk(t *testing.T) {
	c := testConfig(t)
	if err := c.writeCertificates(); err != nil {
		t.Fatal(err)
	}
	blocks := strings.Count(string(c.corefile()), "bind 10.77.0.3 10.96.0.10\n")
	if blocks != 2 {
		t.Errorf("%d of the 2 parts of the configuration listen on both addresses:\n%s", blocks, c.corefile())
	}
	_, after, _ := strings.Cut(string(c.corefile()), "kubeconfig ")
	if _, err := os.Stat(strings.Fields(after)[0]); err != nil {
		t.Error(err)
	}
}

func TestTheServiceOfNamesHasTheServersAddressAndPorts(t *testing.T) {
	var service struct {
		Spec struct {
			ClusterIP string
			Ports     []any
		}
	}
	var slice struct {
		Metadata  struct{ Labels map[string]string }
		Endpoints []struct{ Addresses []string }
		Ports     []any
	}
	objects := map[string]any{"services": &service, "endpointslices": &slice}
	for _, o := range testConfig(t).dnsObjects() {
		into, ok := objects[path.Base(path.Dir(o.path))]
		if !ok {
			continue
		}
		data, err := json.Marshal(o.content)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	if service.Spec.ClusterIP != "10.96.0.10" || len(service.Spec.Ports) != 2 {
		t.Errorf("the Service is %+v", service)
	}
	if len(slice.Endpoints) != 1 || !slices.Equal(slice.Endpoints[0].Addresses, []string{"10.77.0.3"}) || len(slice.Ports) != 2 {
		t.Errorf("its endpoints are %+v", slice)
	}
	if slice.Metadata.Labels["kubernetes.io/service-name"] != "kube-dns" {
		t.Errorf("the endpoints belong to %v", slice.Metadata.Labels)
	}
}

func TestEveryObjectIsAtThePathOfItsName(t *testing.T) {
	for _, o := range testConfig(t).dnsObjects() {
		metadata, _ := o.content["metadata"].(map[string]any)
		if metadata["name"] != path.Base(o.path) {
			t.Errorf("%s has the name %v", o.path, metadata["name"])
		}
	}
}

func TestAnObjectIsAppliedWhetherItIsNewOrNot(t *testing.T) {
	for _, status := range []int{http.StatusCreated, http.StatusOK, http.StatusForbidden} {
		var got, body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got, body = r.Method+" "+r.URL.String()+" "+r.Header.Get("Content-Type"), string(data)
			w.WriteHeader(status)
		}))
		client := &Client{server: server.URL, http: server.Client()}
		err := client.Apply(t.Context(), "/things/a", map[string]any{"kind": "Thing"})
		server.Close()
		if (err != nil) != (status == http.StatusForbidden) {
			t.Errorf("status %d: %v", status, err)
		}
		if got != "PATCH /things/a?fieldManager=lab&force=true application/apply-patch+yaml" || body != `{"kind":"Thing"}` {
			t.Errorf("the server was asked for %s with %s", got, body)
		}
	}
}
