package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/survey"
)

// The labels that the chart gives the workloads.
const (
	nameLabel      = "app.kubernetes.io/name"
	componentLabel = "app.kubernetes.io/component"
	versionLabel   = "app.kubernetes.io/version"
)

// programs reads the workloads that run Berth.
func programs(ctx context.Context, q question) (survey.Programs, error) {
	found := survey.Programs{Namespace: q.system}
	var controllers appsv1.DeploymentList
	var agents appsv1.DaemonSetList
	for component, list := range map[string]client.ObjectList{"controller": &controllers, "agent": &agents} {
		err := q.reader.List(ctx, list, client.InNamespace(q.system), client.MatchingLabels{nameLabel: "berth", componentLabel: component})
		if apierrors.IsForbidden(err) {
			return found, fmt.Errorf("reading Berth's programs in namespace %s: %w; ask for the right to list its deployments and daemonsets", q.system, err)
		}
		if err != nil {
			return found, fmt.Errorf("reading Berth's programs in namespace %s: %w", q.system, err)
		}
	}
	found.Controllers, found.Agents = controllers.Items, agents.Items
	return found, nil
}
