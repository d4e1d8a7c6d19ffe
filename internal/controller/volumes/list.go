package volumes

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// tokenPrefix is in every page token, so that a foreign string is not taken for one.
const tokenPrefix = "after:"

// List returns up to limit volumes in order of their ids, all of them if limit
// is 0, and a token for the rest, or an empty one. The token names the last id
// returned: volumes that come or go between pages are neither skipped nor
// repeated. A token that List did not make is ErrBadToken.
func (s *Service) List(ctx context.Context, token string, limit int) ([]Volume, string, error) {
	after, err := decodeToken(token)
	if err != nil {
		return nil, "", err
	}
	var list v1alpha1.VolumeList
	if err := s.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing volumes: %w", err)
	}
	page := listed(list.Items, after)
	if limit <= 0 || len(page) <= limit {
		return page, "", nil
	}
	page = page[:limit]
	return page, encodeToken(page[limit-1].ID), nil
}

// listed are the volumes that exist for users: made, and not marked for deletion.
func listed(items []v1alpha1.Volume, after string) []Volume {
	var page []Volume
	for i := range items {
		v := &items[i]
		if v.Name <= after || v.DeletionTimestamp != nil || !Carved(v) {
			continue
		}
		page = append(page, view(v))
	}
	slices.SortFunc(page, func(a, b Volume) int { return strings.Compare(a.ID, b.ID) })
	return page
}

func encodeToken(id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + id))
}

func decodeToken(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	id, ok := strings.CutPrefix(string(raw), tokenPrefix)
	if err != nil || !ok || !v1alpha1.IsVolumeName(id) {
		return "", fail(ErrBadToken, "%q is not a page token: start from the first page", token)
	}
	return id, nil
}
