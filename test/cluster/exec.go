package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in a pod's first container and returns its standard
// output, trimmed.
func (c *Cluster) Exec(ctx context.Context, pod *corev1.Pod, argv ...string) (string, error) {
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	url := set.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: argv, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", url.String())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	if err != nil {
		return "", fmt.Errorf("running %q in pod %s: %w: %s", argv, pod.Name, err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// Logs returns the output of a pod's first container so far.
func (c *Cluster) Logs(ctx context.Context, pod *corev1.Pod) (string, error) {
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	log, err := set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name}).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return string(log), nil
}
