package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// capacityAnnotation is, on a Node, the free space of its pool, and on a pod, the
// space that the pod needs.
const capacityAnnotation = "bench.berth.dev/capacity"

// extender is one in the style of TopoLVM's and open-local's: it is sent whole
// nodes, compares annotations, and sends the nodes that fit back. It holds no room
// for any pod.
type extender struct {
	url    string
	server *http.Server
}

func startExtender(ctx context.Context) (*extender, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the extender: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /predicate", answer(predicate))
	mux.HandleFunc("POST /prioritize", answer(prioritize))
	e := &extender{url: "http://" + listener.Addr().String(), server: &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}}
	go func() { _ = e.server.Serve(listener) }()
	return e, nil
}

func (e *extender) stop() { _ = e.server.Close() }

// answer decodes a question and encodes the answer of f.
func answer[T any](f func(*extenderv1.ExtenderArgs) T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil || args.Pod == nil || args.Nodes == nil {
			http.Error(w, fmt.Sprintf("a pod and whole nodes are needed: %v", err), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f(&args))
	}
}

func predicate(args *extenderv1.ExtenderArgs) extenderv1.ExtenderFilterResult {
	needs := capacity(args.Pod.Annotations)
	result := extenderv1.ExtenderFilterResult{Nodes: &corev1.NodeList{}, FailedNodes: extenderv1.FailedNodesMap{}}
	for i := range args.Nodes.Items {
		node := &args.Nodes.Items[i]
		if has := capacity(node.Annotations); has < needs {
			result.FailedNodes[node.Name] = "out of free space"
			continue
		}
		result.Nodes.Items = append(result.Nodes.Items, *node)
	}
	return result
}

// prioritize is the logarithm of the free space, from 0 to 10.
func prioritize(args *extenderv1.ExtenderArgs) extenderv1.HostPriorityList {
	list := extenderv1.HostPriorityList{}
	for i := range args.Nodes.Items {
		node := &args.Nodes.Items[i]
		score := bits.Len64(uint64(max(capacity(node.Annotations), 0) / gi)) //nolint:gosec // it is not negative
		list = append(list, extenderv1.HostPriority{Host: node.Name, Score: int64(min(score, int(extenderv1.MaxExtenderPriority)))})
	}
	return list
}

// capacity is the value of the annotation, or -1.
func capacity(annotations map[string]string) int64 {
	n, err := strconv.ParseInt(annotations[capacityAnnotation], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
