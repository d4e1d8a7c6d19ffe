package usecase

import (
	"errors"
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
	for _, token := range []string{"invalid-token", "1", "====", EncodeToken("../etc"), EncodeToken("")} {
		if _, err := DecodeToken(token, v1alpha1.IsVolumeName); !errors.Is(err, ErrBadToken) {
			t.Errorf("%q: %v, want ErrBadToken", token, err)
		}
	}
}
