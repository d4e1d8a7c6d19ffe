package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/survey"
)

// addLUNs reads the LUNs. A cluster without that kind of object has none.
func addLUNs(ctx context.Context, q question, to *survey.Cluster) error {
	var list v1alpha1.LUNList
	err := q.reader.List(ctx, &list)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		_, err := fmt.Fprintln(q.notes, "note: LUNs may not be read: what is said here is as if there were none")
		return err
	case err != nil:
		return fmt.Errorf("listing LUNs: %w", err)
	}
	to.LUNs = list.Items
	return nil
}
