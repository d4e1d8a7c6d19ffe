package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// maxBody is the largest question in bytes that is read: a pod and the names of all
// nodes of the largest clusters.
const maxBody = 16 << 20

// Handler serves the extender while ready returns nil.
func Handler(e *Extender, ready func() error, log logr.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /filter", question(ready, log, func(ctx context.Context, pod *corev1.Pod, nodes []string) (any, error) {
		return e.Filter(ctx, pod, nodes)
	}))
	mux.Handle("POST /prioritize", question(ready, log, func(ctx context.Context, pod *corev1.Pod, nodes []string) (any, error) {
		return e.Prioritize(ctx, pod, nodes)
	}))
	return mux
}

type answer func(ctx context.Context, pod *corev1.Pod, nodes []string) (any, error)

// question reads a question and writes the answer. Every failure is an HTTP
// status: an error within the answer would count as the pod's.
func question(ready func() error, log logr.Logger, ask answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := ready(); err != nil {
			// The Service may lead to another process next time, but only on a new connection.
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		pod, nodes, err := parse(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := ask(r.Context(), pod, nodes)
		if err != nil {
			log.Error(err, "answering the scheduler", "namespace", pod.Namespace, "pod", pod.Name)
			http.Error(w, err.Error(), status(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			log.V(1).Info("the scheduler did not take the answer", "problem", err.Error())
		}
	})
}

func status(err error) int {
	switch {
	case errors.Is(err, errNoSuchPod):
		return http.StatusNotFound
	case errors.Is(err, errTooManyMisses):
		return http.StatusTooManyRequests
	default:
		return http.StatusInternalServerError
	}
}

func parse(w http.ResponseWriter, r *http.Request) (*corev1.Pod, []string, error) {
	var args Args
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&args); err != nil {
		return nil, nil, fmt.Errorf("reading the question: %w", err)
	}
	switch {
	case args.Pod == nil || args.Pod.UID == "":
		return nil, nil, errors.New("the question has no pod")
	case args.NodeNames == nil:
		return nil, nil, errors.New("the question has no node names: set nodeCacheCapable to true in the scheduler's configuration")
	}
	return args.Pod, *args.NodeNames, nil
}
