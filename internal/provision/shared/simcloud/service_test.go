package simcloud_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

// served serves a cloud, and returns it as another process has it.
func served(t *testing.T, c shared.Cloud) shared.Cloud {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cloud.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- simcloud.Serve(ctx, l, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return simcloud.Dial(socket)
}

// says is a cloud that answers each call with an error.
type says struct{ err error }

func (c says) Change(context.Context, string, []shared.Disk, []shared.Disk) (string, error) {
	return "", c.err
}

func (c says) Progress(context.Context, string, string) (shared.Progress, error) {
	return shared.Progress{Failed: map[string]error{"disk": c.err}}, nil
}
func (c says) Attached(context.Context, string) ([]string, error) { return nil, c.err }

func TestTheErrorsOfACloudAreThoseThatAnotherProcessSees(t *testing.T) {
	for _, class := range []error{
		provision.ErrConflict, provision.ErrNotFound, provision.ErrNoSpace, provision.ErrInvalid, provision.ErrUnsupported, provision.ErrUnavailable,
	} {
		err := fmt.Errorf("%w: for a reason", class)
		c := served(t, says{err})
		_, changed := c.Change(t.Context(), "a", nil, nil)
		_, listed := c.Attached(t.Context(), "a")
		p, asked := c.Progress(t.Context(), "a", "o")
		for call, got := range map[string]error{"change": changed, "attached": listed, "progress": p.Failed["disk"]} {
			if !errors.Is(got, class) || got.Error() != err.Error() {
				t.Errorf("%s: %v is seen as %v", call, err, got)
			}
		}
		if asked != nil {
			t.Error(asked)
		}
	}
	for _, want := range []shared.LaterError{{After: 3 * time.Second, Throttled: true}, {}} {
		_, err := served(t, says{&want}).Change(t.Context(), "a", nil, nil)
		got := &shared.LaterError{}
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%+v is seen as %v", want, err)
		}
	}
}

func TestACloudThatIsNotThereIsUnavailable(t *testing.T) {
	c := simcloud.Dial(filepath.Join(t.TempDir(), "none"))
	if _, err := c.Change(t.Context(), "a", nil, nil); !errors.Is(err, provision.ErrUnavailable) {
		t.Error(err)
	}
}

func TestAnotherProcessAttachesADisk(t *testing.T) {
	local := simcloud.New(simcloud.Config{Clock: clock.RealClock{}, Attach: time.Millisecond})
	local.AddMachine("a")
	d := shared.Disk{Volume: "v", Handle: "simcloud:///one", Identity: "wwn:1"}
	if err := local.Create(t.Context(), d.Handle, simcloud.Spec{Identity: d.Identity, Bytes: 1 << 20, Shares: 1}); err != nil {
		t.Fatal(err)
	}
	c := served(t, local)
	operation, err := c.Change(t.Context(), "a", []shared.Disk{d}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for p := (shared.Progress{Running: true}); p.Running; {
		if p, err = c.Progress(t.Context(), "a", operation); err != nil || len(p.Failed) > 0 {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if got, err := c.Attached(t.Context(), "a"); err != nil || !slices.Equal(got, []string{d.Handle}) {
		t.Errorf("%q, %v", got, err)
	}
}
