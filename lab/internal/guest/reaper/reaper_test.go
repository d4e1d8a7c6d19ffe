package reaper

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The test's own process must not reap: it would take other children. So it starts
// itself a second time, and that process reaps.
func TestMain(m *testing.M) {
	if program := os.Getenv("REAPER_RUNS"); program != "" {
		// Orphans come to it as they do to process 1.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		err := Run("/bin/sh", []string{"sh", "-c", program}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		_, _ = os.Stdout.WriteString(err.Error())
		return
	}
	os.Exit(m.Run())
}

// reaped returns the error of Run for a shell script.
func reaped(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "REAPER_RUNS="+program)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTheEndOfTheProgramIsTold(t *testing.T) {
	for program, want := range map[string]string{
		"exit 7":        "exit status 7",
		"kill -TERM $$": "signal 15",
		// The orphan is there, if only as a zombie, until it is collected.
		"p=$(sh -c 'true & echo $!'); while kill -0 $p 2>/dev/null; do :; done; exit 3": "exit status 3",
	} {
		if got := reaped(t, program); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", program, got, want)
		}
	}
}

func TestAProgramThatIsNotThereIsNamed(t *testing.T) {
	err := Run("/no/such/program", []string{"absent"}, &os.ProcAttr{})
	if err == nil || !strings.Contains(err.Error(), "starting [absent]") {
		t.Errorf("got %v", err)
	}
}
