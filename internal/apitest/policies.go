package apitest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// lastPolicy is installed after all others. The API server recompiles its whole
// list at once, from caches that keep the order of writes, so when this one is
// in force all are.
const lastPolicy = "berth-agent-storagenodes"

func (e *Environment) installPolicies(ctx context.Context, chart string) error {
	objects, err := readObjects(filepath.Join(chart, policies))
	if err != nil {
		return err
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	for _, object := range objects {
		if err := e.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("installing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return e.awaitPolicies(ctx)
}

func order(o *unstructured.Unstructured) int {
	rank := 0
	if o.GetName() == lastPolicy {
		rank++
	}
	if o.GetKind() == "ValidatingAdmissionPolicyBinding" {
		rank += 2
	}
	return rank
}

// awaitPolicies tries, in a dry run, a request that lastPolicy forbids, until it is refused.
func (e *Environment) awaitPolicies(ctx context.Context) error {
	agent, err := e.agentClient(ctx, "apitest-probe")
	if err != nil {
		return err
	}
	foreign := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "apitest-probe-of-another"}}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := agent.Create(ctx, foreign.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the admission policies to be in force: %w", err)
	}
	return nil
}
