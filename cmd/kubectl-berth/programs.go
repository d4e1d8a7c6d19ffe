package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/survey"
)

// nameLabel is what the chart gives all workloads.
const nameLabel = "app.kubernetes.io/name"

// programs reads the workloads that run Berth.
func programs(ctx context.Context, q question) (survey.Programs, error) {
	var deployments appsv1.DeploymentList
	var daemonSets appsv1.DaemonSetList
	for _, list := range []client.ObjectList{&deployments, &daemonSets} {
		err := q.reader.List(ctx, list, client.InNamespace(q.system), client.MatchingLabels{nameLabel: "berth"})
		if apierrors.IsForbidden(err) {
			return survey.Programs{}, fmt.Errorf("reading Berth's programs in namespace %s: %w; ask for the right to list its deployments and daemonsets", q.system, err)
		}
		if err != nil {
			return survey.Programs{}, fmt.Errorf("reading Berth's programs in namespace %s: %w", q.system, err)
		}
	}
	return survey.ProgramsOf(q.system, deployments.Items, daemonSets.Items), nil
}
