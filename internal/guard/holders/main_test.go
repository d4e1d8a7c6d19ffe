//go:build platform

package holders

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// inNamespace says that the tests run in process and mount namespaces of their own.
const inNamespace = "BERTH_TEST_IN_NAMESPACE"

// TestMain runs the tests in namespaces of their own, so that the test's are the only processes.
// A process that may not be looked at is no proof, and a shared machine may have such.
func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) != "" {
		os.Exit(m.Run())
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	args := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "--", self}
	cmd := exec.Command("unshare", append(args, os.Args[1:]...)...) //nolint:forbidigo,noctx // the tests themselves
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
