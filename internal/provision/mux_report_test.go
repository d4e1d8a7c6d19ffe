package provision_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// silence keeps the disks' provisioner from reporting, even after its caller has left.
type silence struct {
	mu   sync.Mutex
	held chan struct{}
	err  error
	// asked counts the reports.
	asked int
}

func (s *silence) Before(_ context.Context, op memory.Operation, _ string) error {
	if op != memory.Report {
		return nil
	}
	s.mu.Lock()
	s.asked++
	held, err := s.held, s.err
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	return err
}

func (*silence) After(context.Context, memory.Operation, string) error { return nil }

// begin makes the provisioner silent, until end is called.
func (s *silence) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.held = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = nil
		close(held)
	})
}

func (s *silence) asks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *silence) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// beside returns a node with a volume group, and a disk whose provisioner has the silence s.
func beside(s *silence) *provision.Mux {
	groups := memory.NewDisks(memory.PoolConfig{PoolRef: thick, Total: 100 * unit, Unit: unit})
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: whole, Total: diskSize, Unit: diskSize})
	return provision.NewMux(
		provision.Member{Types: []string{provision.LVM}, Provisioner: memory.New(groups, nil)},
		provision.Member{Types: []string{provision.Device}, Provisioner: memory.New(disks, s)},
	)
}

// reported returns the problem of each pool in a report, by the pool's name.
func reported(t *testing.T, m *provision.Mux) (map[string]string, error) {
	t.Helper()
	pools, err := m.Report(t.Context())
	said := map[string]string{}
	for _, p := range pools {
		said[p.Name] = p.Problem
	}
	return said, err
}

func TestAMemberThatHangsFromTheStartIsNamedAndTheOthersAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silence{}
		m := beside(s)
		end := s.begin()
		for range 3 { // it is not asked again
			said, err := reported(t, m)
			if problem, ok := said[thick.Name]; !ok || problem != "" || len(said) != 1 {
				t.Errorf("reported %v", said)
			}
			if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "pools of type Device: no answer") {
				t.Errorf("the report does not name it: %v", err)
			}
		}
		if asked := s.asks(); asked != 1 {
			t.Errorf("it was asked %d times while it hangs, want once", asked)
		}
		end()
		<-m.Changed()
		if said, err := reported(t, m); err != nil || len(said) != 2 || said[whole.Name] != "" {
			t.Errorf("once it answers: %v, %v", said, err)
		}
	})
}

func TestAMemberThatFailsIsReportedAsItWasKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silence{}
		m := beside(s)
		if _, err := m.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, trouble := range map[string]func() (end func()){
			"the member fails": func() func() {
				s.fail(provision.ErrUnavailable)
				return func() { s.fail(nil) }
			},
			"the member hangs": s.begin,
		} {
			end := trouble()
			said, err := reported(t, m)
			if said[thick.Name] != "" || !strings.Contains(said[whole.Name], "cannot be asked") || !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("%s: %v, %v", name, said, err)
			}
			end()
			synctest.Wait()
			if said, err := reported(t, m); said[whole.Name] != "" || err != nil {
				t.Errorf("%s, and works again: %v, %v", name, said, err)
			}
		}
	})
}

func TestAReportThatItsCallerGivesUpIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silence{}
		m := beside(s)
		defer s.begin()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if pools, err := m.Report(ctx); !errors.Is(err, context.DeadlineExceeded) || len(pools) > 0 {
			t.Errorf("reported %v, %v", pools, err)
		}
	})
}
