package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
)

// Output runs a program in the guest and returns its standard output. If the
// program fails, the error contains its standard error.
func (m *Machine) Output(ctx context.Context, argv ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	code, err := m.Exec(ctx, ExecRequest{Argv: argv, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, fmt.Errorf("running %s on %s: exit code %d: %s",
			argv[0], m.Spec.Name, code, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// Pipe runs a program in the guest with an input and discards its output. If the
// program fails, the error contains its standard error.
func (m *Machine) Pipe(ctx context.Context, stdin io.Reader, argv ...string) error {
	var stderr bytes.Buffer
	code, err := m.Exec(ctx, ExecRequest{Argv: argv, Stdin: stdin, Stderr: &stderr})
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("running %s on %s: exit code %d: %s",
			argv[0], m.Spec.Name, code, strings.TrimSpace(stderr.String()))
	}
	return nil
}
