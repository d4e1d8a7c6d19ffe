package usecase

import (
	"encoding/base64"
	"slices"
	"strings"
)

// tokenPrefix is in every page token, so that a foreign string is not taken for one.
const tokenPrefix = "after:"

// Page returns up to limit of the items in order of their ids, all of them if limit
// is 0, and a token for the rest, or an empty one. The token names the last id
// returned: if items come or go between pages, no other item is skipped or repeated.
func Page[T any](items []T, id func(T) string, after string, limit int) (page []T, next string) {
	for _, item := range items {
		if id(item) > after {
			page = append(page, item)
		}
	}
	slices.SortFunc(page, func(a, b T) int { return strings.Compare(id(a), id(b)) })
	if limit <= 0 || len(page) <= limit {
		return page, ""
	}
	page = page[:limit]
	return page, EncodeToken(id(page[limit-1]))
}

// EncodeToken makes the token for the items after an id.
func EncodeToken(id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + id))
}

// DecodeToken returns the id in a token, or empty for an empty one. A token that
// EncodeToken did not make of an id is ErrBadToken.
func DecodeToken(token string, isID func(string) bool) (after string, err error) {
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	id, ok := strings.CutPrefix(string(raw), tokenPrefix)
	if err != nil || !ok || !isID(id) {
		return "", Fail(ErrBadToken, "%q is not a page token: start from the first page", token)
	}
	return id, nil
}
