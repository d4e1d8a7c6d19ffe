//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newest is how many lines of each log a failed test prints.
const newest = 15

// tell prints information that may explain a test's failure, while its pods are there: their
// events, and the lines in their nodes' logs about them and their volumes.
func (b *bench) tell() {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	var events corev1.EventList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&events, &pods} {
		if err := b.List(ctx, list, client.InNamespace(b.namespace)); err != nil {
			b.Errorf("asking for events and pods: %v", err)
		}
	}
	slices.SortFunc(events.Items, func(x, y corev1.Event) int { return x.LastTimestamp.Compare(y.LastTimestamp.Time) })
	var lines []string
	for _, e := range events.Items {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s: %s", e.LastTimestamp.UTC().Format(time.TimeOnly),
			e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
	}
	show(b, "events", lines)

	var volumes []string
	for _, v := range b.volumes(ctx) {
		volumes = append(volumes, v.Name)
	}
	for _, p := range pods.Items {
		b.Logf("pod %s on node %s: %s, deleted at %v: %+v", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Status.ContainerStatuses)
		showLogs(ctx, b, p.Spec.NodeName, append(volumes, string(p.UID)))
	}
}

// showLogs prints the lines in a node's logs that contain one of some words, and its errors.
func showLogs(ctx context.Context, b *bench, node string, words []string) {
	if node == "" {
		return
	}
	for _, program := range []string{"kubelet", "containerd"} {
		log, err := b.Lab.Output(ctx, "logs", node+"/"+program)
		show(b, program+" of "+node, about(log, err, append(words, "level=error", "\" err=")))
	}
	var agents corev1.PodList
	if err := b.List(ctx, &agents, client.MatchingLabels{"app.kubernetes.io/component": "agent"}); err != nil {
		b.Errorf("asking for the agents: %v", err)
	}
	for _, a := range agents.Items {
		if a.Spec.NodeName == node {
			log, err := b.Logs(ctx, &a)
			show(b, "agent of "+node, about(log, err, append(words, `"level":"ERROR"`)))
		}
	}
}

// about returns the lines of a log that contain one of some words.
func about(log string, err error, words []string) (lines []string) {
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) }) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func show(b *bench, of string, lines []string) {
	b.Logf("%s, the newest of %d lines:\n%s", of, len(lines), strings.Join(lines[max(len(lines)-newest, 0):], "\n"))
}
