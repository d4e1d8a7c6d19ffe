package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// asked is a question about a pod that needs 3 GiB and nodes with so much free.
func asked(free ...string) *extenderv1.ExtenderArgs {
	args := &extenderv1.ExtenderArgs{Pod: kind{claims: 3}.pod("p"), Nodes: &corev1.NodeList{}}
	for i, each := range free {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		if each != "" {
			node.Annotations = map[string]string{capacityAnnotation: each}
		}
		args.Nodes.Items = append(args.Nodes.Items, node)
	}
	return args
}

func TestTheExtenderSendsTheNodesBackThatHaveRoom(t *testing.T) {
	e, err := startExtender(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.stop)
	var filtered extenderv1.ExtenderFilterResult
	post(t, e.url+"/predicate", asked("3221225472", "3221225471", "", "none"), &filtered)
	if len(filtered.Nodes.Items) != 1 || filtered.Nodes.Items[0].Name != nodeName(0) {
		t.Errorf("fitting are %v, want the first alone", filtered.Nodes.Items)
	}
	if len(filtered.FailedNodes) != 3 {
		t.Errorf("refused are %v, want three", filtered.FailedNodes)
	}
	var scores extenderv1.HostPriorityList
	post(t, e.url+"/prioritize", asked("0", "4294967296", "1152921504606846976"), &scores)
	want := extenderv1.HostPriorityList{{Host: nodeName(0), Score: 0}, {Host: nodeName(1), Score: 3}, {Host: nodeName(2), Score: 10}}
	if diff := cmp.Diff(want, scores); diff != "" {
		t.Error(diff)
	}
}

func TestTheExtenderWantsWholeNodes(t *testing.T) {
	e, err := startExtender(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.stop)
	args := asked()
	args.Nodes, args.NodeNames = nil, &[]string{"a"}
	if status := post(t, e.url+"/predicate", args, nil); status != http.StatusBadRequest {
		t.Errorf("names alone are answered with %d", status)
	}
}

func post(t *testing.T, url string, question, into any) (status int) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return response.StatusCode
}
