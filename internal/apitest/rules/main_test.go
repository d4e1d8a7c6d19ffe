package rules

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/internal/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// expect compares the answer to a request with the refusal it should get; an
// empty refusal means that the request succeeds.
func expect(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case refusal != "" && err == nil:
		t.Fatalf("allowed, want refusal %q", refusal)
	case refusal != "" && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
		t.Fatalf("failed with %v, want refusal %q", err, refusal)
	case refusal != "" && !strings.Contains(err.Error(), refusal):
		t.Fatalf("refused with %v\nwant %q", err, refusal)
	}
}
