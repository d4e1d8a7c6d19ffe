package iscsi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Program is open-iscsi's.
const Program = "iscsiadm"

// Exit codes of iscsiadm (iscsiadm(8), section EXIT STATUS).
const (
	exitNoConnection  = 4
	exitTimeout       = 8
	exitSessionExists = 15
	exitDaemon        = 18
	exitFatalLogin    = 19
	exitNoDaemon      = 20
	exitNoRecord      = 21
	exitRefused       = 24
	exitNotConnected  = 32
)

// advice says to people what an exit code of iscsiadm means.
var advice = map[int]string{
	exitNoConnection: "no connection to the portal: check the address, and the network between node and target",
	exitTimeout:      "the portal did not answer in time",
	exitDaemon:       "iscsid does not answer: it must run on the node",
	exitFatalLogin:   "target and node do not agree: the target's own password may be another one than /etc/iscsi/iscsid.conf on the node has (password_in)",
	exitNoDaemon:     "iscsid does not run on the node",
	exitRefused:      "the target refuses this node: allow the name in /etc/iscsi/initiatorname.iscsi there; if it asks for a password (CHAP), the node needs that in /etc/iscsi/iscsid.conf",
	exitNotConnected: "iscsid was restarted while the target is away, and cannot log out of the session before the target is back; if it does not come back, restart the machine",
}

// settings of a session. They are written for each login, because the node's iscsid.conf may say
// something else.
var settings = [][2]string{
	// A boot does not log in: the agent does, when it knows that the disk is wanted.
	{"node.startup", "manual"},
	// A login attaches no unit.
	{"node.session.scan", "manual"},
	// A path that is away holds writes up for so many seconds, and then they fail, and the filesystem
	// with them. Two minutes are the restart of a target. It need not be short for a failover: the
	// reservation keeps late writes out.
	{"node.session.timeo.replacement_timeout", "120"},
	// A connection without an answer for ten seconds counts as away.
	{"node.conn[0].timeo.noop_out_interval", "5"},
	{"node.conn[0].timeo.noop_out_timeout", "5"},
	// An attach that failed is tried again by its caller, with a growing pause.
	{"node.conn[0].timeo.login_timeout", "15"},
	{"node.session.initial_login_retry_max", "1"},
}

// initiator logs in and out, by open-iscsi.
type initiator struct{ call }

// login makes a session through the first portal that answers.
func (i initiator) login(ctx context.Context) error {
	var failed []error
	for _, portal := range i.Portals {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := i.loginAt(portal)
		if err == nil {
			return nil
		}
		failed = append(failed, fmt.Errorf("logging in at %s: %w", portal, err))
	}
	return provision.Unavailable(errors.Join(failed...))
}

func (i initiator) loginAt(portal netip.AddrPort) error {
	record := []string{"-m", "node", "-T", i.Target, "-p", portal.String(), "-I", i.interfaceName()}
	if err := i.iscsiadm("iscsiadm new", record, "-o", "new"); err != nil {
		return err
	}
	for _, s := range settings {
		if err := i.iscsiadm("iscsiadm update", record, "-o", "update", "-n", s[0], "-v", s[1]); err != nil {
			return err
		}
	}
	err := i.iscsiadm("iscsiadm login", record, "--login")
	if err == nil || exited(err, exitSessionExists) {
		return nil
	}
	return errors.Join(err, i.forget(record))
}

// logout ends a session, if there is one, and removes the records of the target.
func (i initiator) logout(s *Session) error {
	if s != nil {
		number := strings.TrimPrefix(s.Name, "session")
		if err := i.iscsiadm("iscsiadm logout", []string{"-m", "session", "-r", number}, "--logout"); err != nil {
			return provision.Unavailable(fmt.Errorf("logging out of target %s: %w", i.Target, err))
		}
	}
	if err := i.forget([]string{"-m", "node", "-T", i.Target, "-I", i.interfaceName()}); err != nil {
		return provision.Unavailable(fmt.Errorf("removing the records of target %s: %w", i.Target, err))
	}
	return nil
}

func (i initiator) forget(record []string) error {
	err := i.iscsiadm("iscsiadm delete", record, "-o", "delete")
	if exited(err, exitNoRecord) {
		return nil
	}
	return err
}

func (i initiator) iscsiadm(operation string, record []string, args ...string) error {
	i.runs(time.Now())
	defer i.runs(time.Time{})
	_, err := i.c.Runner.Change(run.Command{Operation: operation, Program: Program, Args: slices.Concat(record, args)})
	exit, ok := errors.AsType[*run.ExitError](err)
	if ok && advice[exit.Code] != "" {
		return fmt.Errorf("%s (%w)", advice[exit.Code], err)
	}
	return err
}

// runs notes since when iscsiadm runs for the disk.
func (i initiator) runs(since time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.program = since
}

func exited(err error, code int) bool {
	exit, ok := errors.AsType[*run.ExitError](err)
	return ok && exit.Code == code
}
