package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// MissingError says that a program the lab needs is not installed.
type MissingError struct {
	Program string
	Package string // the Debian package that has it, if known
}

func (e *MissingError) Error() string {
	if e.Package == "" {
		return fmt.Sprintf("%s is not installed", e.Program)
	}
	return fmt.Sprintf("%s is not installed: run apt-get install %s", e.Program, e.Package)
}

// ExitError says that a program ended with a failure.
type ExitError struct {
	Program string
	Code    int    // exit code; -1 after a signal
	Stderr  string // the last lines
	err     error
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s: %v", e.Program, e.err)
	}
	return fmt.Sprintf("%s: %v: %s", e.Program, e.err, e.Stderr)
}

func (e *ExitError) Unwrap() error { return e.err }

// Command is a program to run to completion.
type Command struct {
	Path  string // program, looked up in PATH and the system directories
	Args  []string
	Env   []string // added to the environment of the lab itself
	Dir   string
	NetNS string // path of a network namespace to run in, or empty
	// Beside is the pid of a process in whose namespaces the program runs, or 0. The
	// program has the same path on both sides.
	Beside int
	Stdin  io.Reader
	// Stdout gets standard output; nil means Log for Run.
	Stdout io.Writer
	// Log gets standard error; it may be nil.
	Log io.Writer
}

// Run runs c to completion. It returns a [MissingError] if the program does
// not exist and an [ExitError] if it fails.
func Run(ctx context.Context, c Command) error {
	if c.Stdout == nil {
		c.Stdout = c.log()
	}
	return c.run(ctx)
}

// Output runs c to completion and returns its standard output.
func Output(ctx context.Context, c Command) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.run(ctx)
	return out.Bytes(), err
}

func (c Command) log() io.Writer {
	if c.Log == nil {
		return io.Discard
	}
	return c.Log
}

func (c Command) run(ctx context.Context) error {
	path, err := Look(c.Path)
	if err != nil {
		return err
	}
	stderr := &tail{limit: 2048}
	cmd := exec.CommandContext(ctx, path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir, cmd.Stdin, cmd.Stdout = c.Dir, c.Stdin, c.Stdout
	cmd.Stderr = io.MultiWriter(stderr, c.log())
	// The program has its own process group, which ends as a whole when ctx ends:
	// children of a compiler or an installer would otherwise go on working.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if c.Beside != 0 {
		err = startBeside(c.Beside, cmd)
	} else {
		err = startIn(c.NetNS, cmd)
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.Path, err)
	}
	err = cmd.Wait()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), context.Cause(ctx))
	}
	exit := &ExitError{Program: filepath.Base(path), Code: -1, Stderr: stderr.String(), err: err}
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		exit.Code = ee.ExitCode()
	}
	return exit
}

// systemDirs are searched after PATH: a user's PATH often lacks sbin.
var systemDirs = []string{"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"}

// Look returns the path of a program, or a [MissingError].
func Look(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	if !strings.Contains(program, "/") {
		for _, dir := range systemDirs {
			if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
				return path, nil
			}
		}
	}
	return "", &MissingError{Program: program, Package: debianPackage[filepath.Base(program)]}
}

// debianPackage names the package of every program the lab runs.
var debianPackage = map[string]string{
	"apt-get":            "apt",
	"busybox":            "busybox-static",
	"debootstrap":        "debootstrap",
	"dpkg-deb":           "dpkg",
	"gcc":                "gcc",
	"ip":                 "iproute2",
	"mke2fs":             "e2fsprogs",
	"nsenter":            "util-linux",
	"qemu-img":           "qemu-utils",
	"qemu-system-x86_64": "qemu-system-x86",
	"nft":                "nftables",
	"tgtadm":             "tgt",
	"tgtd":               "tgt",
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	data  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if extra := len(t.data) - t.limit; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.data)) }
