package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/health/healthtest"
)

// serve serves until stop is called or the test ends. stop returns the error of Serve.
func serve(t *testing.T, h http.Handler) (url string, stop func() error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, h) }()
	return "http://" + l.Addr().String(), func() error { cancel(); return <-served }
}

func TestAProcessIsWellWhereNothingIsWrong(t *testing.T) {
	well, ill := Of(func() error { return nil }), Of(func() error { return errors.New("vg0: a disk is missing") })
	const ok, failing = http.StatusOK, http.StatusInternalServerError
	for name, tc := range map[string]struct {
		live, ready     Checks
		healthz, readyz int
	}{
		"no checks":              {nil, nil, ok, ok},
		"all checks pass":        {Checks{"csi": well}, Checks{"csi": well}, ok, ok},
		"a pool cannot be read":  {Checks{"csi": well}, Checks{"csi": well, "pools": ill}, ok, failing},
		"calls are not answered": {Checks{"csi": ill}, Checks{"csi": ill}, failing, failing},
	} {
		t.Run(name, func(t *testing.T) {
			url, stop := serve(t, Mux(tc.live, tc.ready))
			for path, want := range map[string]int{"/healthz": tc.healthz, "/readyz": tc.readyz, "/metrics": http.StatusNotFound} {
				if got, _ := healthtest.Get(t, url+path); got != want {
					t.Errorf("%s: %d, want %d", path, got, want)
				}
			}
			if err := stop(); err != nil {
				t.Errorf("told to stop: %v", err)
			}
		})
	}
}

func TestAListenerThatIsClosedEndsTheServer(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), l, Mux(nil, nil)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestWhyACheckFailsIsLoggedOnce(t *testing.T) {
	var lines []string
	l := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	var err error
	check := telling(l, Of(func() error { return err }))
	for _, err = range []error{nil, nil, errors.New("vg0 is missing"), errors.New("vg0 is missing"), errors.New("vg1 is missing"), nil, nil} {
		if got := check(nil); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	want := []string{
		`"level"=0 "msg"="the check fails" "reason"="vg0 is missing"`,
		`"level"=0 "msg"="the check fails" "reason"="vg1 is missing"`,
		`"level"=0 "msg"="the check passes again"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}
