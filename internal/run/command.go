package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Command is one process to run.
type Command struct {
	// Operation is the name under which the command is counted and timed: "lvcreate".
	Operation string
	// Program is a path, or a name looked up in PATH.
	Program string
	// Args are passed as they are; there is no shell.
	Args []string
	// Env are variables that the command gets besides those of this process.
	Env []string
	// In is its standard input, and Out its standard output; nil for none, and for what the Runner
	// returns. The command has the file itself, and nothing copies the bytes.
	In, Out *os.File
}

func (c Command) String() string {
	return strings.Join(append([]string{c.Program}, c.Args...), " ")
}

// Runner runs commands and returns what they wrote to standard output. It is
// safe for concurrent use.
type Runner interface {
	// Query runs a command that changes nothing. When ctx ends the command and all
	// its children are killed and the error wraps the context's cause.
	Query(ctx context.Context, c Command) ([]byte, error)

	// Change runs a command that changes something, to its end.
	Change(c Command) ([]byte, error)
}

// Observer is called for every command that ended, with its duration.
type Observer interface {
	Observe(c Command, d time.Duration, err error)
}

// ExitError is a command that ran and failed.
type ExitError struct {
	Command Command
	// Code is the exit code; -1 if a signal ended the command.
	Code int
	// Stderr is the tail of what the command wrote to standard error.
	Stderr string
}

func (e *ExitError) Error() string {
	text := strings.TrimSpace(e.Stderr)
	if text == "" {
		text = "no message"
	}
	return fmt.Sprintf("%s: exit code %d: %s", e.Command.Operation, e.Code, text)
}
