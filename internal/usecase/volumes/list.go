package volumes

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// List returns up to limit volumes in order of their ids, all of them if limit is 0,
// and a token for the rest, or an empty one. The token names the last id returned: if
// volumes come or go between pages, no other volume is skipped or repeated. A token
// that List did not make is ErrBadToken.
func (s *Service) List(ctx context.Context, token string, limit int) ([]Volume, string, error) {
	after, err := usecase.DecodeToken(token, v1alpha1.IsVolumeName)
	if err != nil {
		return nil, "", err
	}
	var list v1alpha1.VolumeList
	if err := s.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing volumes: %w", err)
	}
	page, next := usecase.Page(listed(list.Items), func(v Volume) string { return v.ID }, after, limit)
	return page, next, nil
}

// listed returns the volumes that exist for users: made, and not marked for deletion.
func listed(items []v1alpha1.Volume) []Volume {
	var list []Volume
	for i := range items {
		if v := &items[i]; v.DeletionTimestamp == nil && Carved(v) {
			list = append(list, View(v))
		}
	}
	return list
}
