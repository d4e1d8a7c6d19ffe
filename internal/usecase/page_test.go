package usecase

import (
	"encoding/base64"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/api/v1alpha1"
)

func TestTokensComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := v1alpha1.VolumeName(rapid.String().Draw(t, "name"))
		if got, err := DecodeToken(EncodeToken(id), v1alpha1.IsVolumeName); err != nil || got != id {
			t.Fatalf("%q became %q, %v", id, got, err)
		}
	})
}

func TestStrangeTokensAreRefused(t *testing.T) {
	id := v1alpha1.VolumeName("v")
	bare := base64.RawURLEncoding.EncodeToString([]byte(id))
	for _, token := range []string{"invalid-token", "1", "====", bare, EncodeToken(id) + "!", EncodeToken("../etc"), EncodeToken("")} {
		if _, err := DecodeToken(token, v1alpha1.IsVolumeName); !errors.Is(err, ErrBadToken) {
			t.Errorf("%q: %v, want ErrBadToken", token, err)
		}
	}
}

func TestPagesShowEachItemOnceAndInOrder(t *testing.T) {
	for limit := range 7 {
		after, got := "", []string(nil)
		for pages := 1; ; pages++ {
			page, token := Page([]string{"c", "a", "e", "b", "d"}, func(id string) string { return id }, after, limit)
			if limit > 0 && len(page) > limit || pages > 5 {
				t.Fatalf("page %d of up to %d is %v", pages, limit, page)
			}
			got = append(got, page...)
			if token == "" {
				break
			}
			var err error
			if after, err = DecodeToken(token, func(string) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("pages of up to %d show %v", limit, got)
		}
	}
}
