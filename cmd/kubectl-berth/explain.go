package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/schedule/explain"
)

// explainer returns the report about a pod or a claim, its name for people, and a note for the text.
type explainer func(ctx context.Context, q question) (report explain.Report, subject, note string, err error)

// look reads the cluster.
func look(ctx context.Context, q question) (explain.Cluster, error) {
	cluster, err := gather(ctx, q)
	if err != nil {
		return cluster, err
	}
	return cluster, addSnapshots(ctx, q, cluster.Lists)
}

func explainPod(ctx context.Context, q question) (report explain.Report, subject, note string, err error) {
	subject = fmt.Sprintf("pod %s/%s", q.namespace, q.name)
	pod := &corev1.Pod{}
	if err := q.reader.Get(ctx, client.ObjectKey{Namespace: q.namespace, Name: q.name}, pod); err != nil {
		return report, subject, "", fmt.Errorf("reading %s: %w", subject, err)
	}
	cluster, err := look(ctx, q)
	if err != nil {
		return report, subject, "", err
	}
	if pod.Spec.NodeName != "" {
		note = fmt.Sprintf("%s is on node %s.\n", subject, pod.Spec.NodeName)
	}
	report, err = cluster.Pod(ctx, pod)
	return report, subject, note, err
}

func explainClaim(ctx context.Context, q question) (report explain.Report, subject, note string, err error) {
	subject = fmt.Sprintf("claim %s/%s", q.namespace, q.name)
	cluster, err := look(ctx, q)
	if err != nil {
		return report, subject, "", err
	}
	report, err = cluster.Claim(ctx, q.namespace, q.name)
	return report, subject, "", err
}
