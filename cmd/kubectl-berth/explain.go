package main

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/schedule/explain"
)

type explainer func(ctx context.Context, q question, out io.Writer) error

// look reads the cluster.
func look(ctx context.Context, q question) (explain.Cluster, error) {
	cluster, err := gather(ctx, q)
	if err != nil {
		return cluster, err
	}
	return cluster, addSnapshots(ctx, q, cluster.Lists)
}

func explainPod(ctx context.Context, q question, out io.Writer) error {
	pod := &corev1.Pod{}
	if err := q.reader.Get(ctx, client.ObjectKey{Namespace: q.namespace, Name: q.name}, pod); err != nil {
		return fmt.Errorf("reading pod %s/%s: %w", q.namespace, q.name, err)
	}
	cluster, err := look(ctx, q)
	if err != nil {
		return err
	}
	report, err := cluster.Pod(ctx, pod)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != "" {
		if _, err := fmt.Fprintf(out, "pod %s/%s is on node %s.\n", q.namespace, q.name, pod.Spec.NodeName); err != nil {
			return err
		}
	}
	return report.Write(out, fmt.Sprintf("pod %s/%s", q.namespace, q.name))
}

func explainClaim(ctx context.Context, q question, out io.Writer) error {
	cluster, err := look(ctx, q)
	if err != nil {
		return err
	}
	report, err := cluster.Claim(ctx, q.namespace, q.name)
	if err != nil {
		return err
	}
	return report.Write(out, fmt.Sprintf("claim %s/%s", q.namespace, q.name))
}
