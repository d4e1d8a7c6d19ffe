package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/schedule/explain"
	"berth.dev/berth/internal/survey"
)

// explainer returns the answer about a pod or a claim.
type explainer func(ctx context.Context, q question) (explanation, error)

// explanation is the answer about a pod or a claim.
type explanation struct {
	report explain.Report
	// subject is its name for people, and note is for the text.
	subject, note string
	// shared are its claims of shared disks, for which no node has room to be counted.
	shared []survey.SharedClaim
}

// document is the answer for programs.
func (e explanation) document() any {
	return struct {
		explain.Document
		SharedDisks []survey.SharedClaim `json:"sharedDisks,omitempty"`
	}{e.report.Document(e.subject), e.shared}
}

func (e explanation) write(to io.Writer) error {
	if _, err := io.WriteString(to, e.note); err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for i := range e.shared {
		s := &e.shared[i]
		is := fmt.Sprintf("claim %s/%s, shared disk %s, is %s", s.Namespace, s.Claim, s.Volume, s.State)
		if s.Volume == "" {
			is = fmt.Sprintf("claim %s/%s of a shared disk is %s", s.Namespace, s.Claim, s.State)
		}
		if s.Message != "" {
			is += "\n  " + plain.Line(s.Message)
		}
		_, _ = fmt.Fprintln(w, is) // an error shows at Flush
		for j := range s.Replicas {
			r := &s.Replicas[j]
			message := r.Message
			if message == s.Message { // the first row has what the volume waits for
				message = ""
			}
			if r.Node != "" {
				_, _ = fmt.Fprintf(w, "  node %s\t%s\t%s\t%s\n", r.Node, r.Role, r.State, plain.Line(message))
			}
		}
	}
	if err := w.Flush(); err != nil || len(e.shared) > 0 && e.report.Volumes == nil {
		return err
	}
	return e.report.Write(to, e.subject)
}

// look reads the cluster.
func look(ctx context.Context, q question) (explain.Cluster, error) {
	cluster, err := gather(ctx, q)
	if err != nil {
		return cluster, err
	}
	return cluster, addSnapshots(ctx, q, cluster.Lists)
}

// addShared says how those of the claims stand that are of shared disks.
func (e *explanation) addShared(ctx context.Context, q question, from explain.Cluster, claims []string) error {
	c := survey.Cluster{Lists: from.Lists, Heartbeats: from.Heartbeats}
	if len(c.SharedClaims(q.namespace, claims)) == 0 {
		return nil
	}
	err := addLUNs(ctx, q, &c)
	e.shared = c.SharedClaims(q.namespace, claims)
	return err
}

func explainPod(ctx context.Context, q question) (explanation, error) {
	e := explanation{subject: fmt.Sprintf("pod %s/%s", q.namespace, q.name)}
	pod := &corev1.Pod{}
	if err := q.reader.Get(ctx, client.ObjectKey{Namespace: q.namespace, Name: q.name}, pod); err != nil {
		return e, fmt.Errorf("reading %s: %w", e.subject, err)
	}
	cluster, err := look(ctx, q)
	if err != nil {
		return e, err
	}
	if pod.Spec.NodeName != "" {
		e.note = fmt.Sprintf("%s is on node %s.\n", e.subject, pod.Spec.NodeName)
	}
	if err := e.addShared(ctx, q, cluster, survey.ClaimsOf(pod)); err != nil {
		return e, err
	}
	e.report, err = cluster.Pod(ctx, pod)
	return e, err
}

func explainClaim(ctx context.Context, q question) (explanation, error) {
	e := explanation{subject: fmt.Sprintf("claim %s/%s", q.namespace, q.name)}
	cluster, err := look(ctx, q)
	if err != nil {
		return e, err
	}
	if err := e.addShared(ctx, q, cluster, []string{q.name}); err != nil {
		return e, err
	}
	e.report, err = cluster.Claim(ctx, q.namespace, q.name)
	return e, err
}
