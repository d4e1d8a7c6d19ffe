//go:build root

package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestAFrozenGroupStandsStillUntilItThaws(t *testing.T) {
	const group = "/berth-lab-freezer-test/node"
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := removeCgroup(context.WithoutCancel(t.Context()), group); err != nil {
			t.Error(err)
		}
	})
	if err := enterCgroup(group, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if isFrozen(group) {
		t.Error("a new group is frozen")
	}
	for range 2 { // a second time changes nothing
		if err := freeze(t.Context(), group, true); err != nil {
			t.Fatal(err)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil || !strings.Contains(string(status), "\nState:\tD") || !isFrozen(group) {
		t.Errorf("the process does not stand still (%v):\n%s", err, status)
	}
	if _, err := io.WriteString(in, "hello\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := freeze(t.Context(), group, false); err != nil {
			t.Fatal(err)
		}
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "hello\n" || isFrozen(group) {
		t.Errorf("after it thawed it says %q, %v", line, err)
	}
}

func TestAFrozenProcessThatIsEndedDoesNothingMore(t *testing.T) {
	const group = "/berth-lab-freezer-test/ended"
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err1 := cmd.StdinPipe()
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := errors.Join(err1, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeCgroup(context.WithoutCancel(t.Context()), group); err != nil {
			t.Error(err)
		}
	})
	err := errors.Join(enterCgroup(group, cmd.Process.Pid), freeze(t.Context(), group, true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "too late\n"); err != nil {
		t.Fatal(err)
	}
	if err := endFrozen(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") || out.Len() > 0 {
		t.Errorf("it ended with %v after it wrote %q", err, out.String())
	}
}

func TestAGroupWithoutFreezerSaysSo(t *testing.T) {
	if err := freeze(t.Context(), "/berth-lab-freezer-test/none", true); err == nil || !strings.Contains(err.Error(), "no freezer") {
		t.Errorf("got %v", err)
	}
}
