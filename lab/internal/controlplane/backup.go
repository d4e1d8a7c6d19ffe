package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/process"
	"berth.dev/berth/lab/internal/progress"
)

// Backup writes the state of the API server to a file, with etcd's own tool and while
// everything runs. It replaces an existing file once the new one is complete.
func Backup(ctx context.Context, c Config, journal Journal, file string) error {
	if rec, ok := journal.Process(etcd); !ok || !rec.Alive() {
		return errors.New("etcd does not run: `lab up` starts it again")
	}
	return process.Run(ctx, process.Command{
		Path:  filepath.Join(c.EtcdTools, "etcdctl"),
		Args:  []string{"--endpoints=" + etcdClients, "--command-timeout=2m", "snapshot", "save", file},
		NetNS: c.NetNS,
	})
}

// Restoration says how to restore an older state of the API server.
type Restoration struct {
	File string // that [Backup] wrote
	// BackInTime lets revisions go back with the state, so that they are used a
	// second time. Otherwise they go on far above those of the backup, and the API server
	// tells clients that watch to read everything anew.
	BackInTime bool
}

// bump is how far above those of the backup revisions go on. etcd's documentation
// recommends this value for Kubernetes.
const bump = "--bump-revision=1000000000"

// Restore ends the control plane, gives etcd the state of a backup and starts the
// control plane again. It refuses a file that is no backup before it ends anything.
//
// Restore restarts all components, as Kubernetes' documentation asks for. Kubelets
// and the processes in pods keep running with the state that they have.
func Restore(ctx context.Context, c Config, journal Journal, r Restoration, step progress.Step) error {
	step.Note("reading %s", filepath.Base(r.File))
	if err := os.RemoveAll(c.restoredData()); err != nil { // of a command that was killed
		return fmt.Errorf("removing what an earlier restore left: %w", err)
	}
	err := process.Run(ctx, process.Command{Path: filepath.Join(c.EtcdTools, "etcdutl"), Args: c.restoreArgs(r)})
	if err != nil {
		return fmt.Errorf("%w\nnothing was changed", explainBackup(r.File, err))
	}
	step.Note("stopping the control plane")
	if err := stop(ctx, journal); err != nil {
		return fmt.Errorf("%w: `lab up` starts what was stopped again, with the state that was", err)
	}
	if err := c.exchangeData(); err != nil {
		return fmt.Errorf("%w: `lab up` starts the control plane again", err)
	}
	if err := Start(ctx, c, journal, step); err != nil {
		return fmt.Errorf("the backup's state is in place, `lab up` goes on from here: %w", err)
	}
	return nil
}

// explainBackup says what to do about a file that etcd cannot restore.
func explainBackup(file string, err error) error {
	if _, stat := os.Stat(file); stat != nil {
		return fmt.Errorf("reading the backup: %w", stat)
	}
	return fmt.Errorf("%s is no complete backup, as `lab api backup` writes it: %w", file, err)
}

func (c Config) data() string         { return filepath.Join(c.Dir, "etcd") }
func (c Config) restoredData() string { return filepath.Join(c.Dir, "etcd.restored") }

// restoreArgs returns the arguments of etcdutl that make a data directory for the member
// that etcdArgs start.
func (c Config) restoreArgs(r Restoration) []string {
	args := []string{"snapshot", "restore", r.File, "--data-dir=" + c.restoredData()}
	for _, a := range c.etcdArgs() {
		name, _, _ := strings.Cut(a, "=")
		if slices.Contains([]string{"--name", "--initial-cluster", "--initial-advertise-peer-urls"}, name) {
			args = append(args, a)
		}
	}
	if !r.BackInTime {
		args = append(args, bump, "--mark-compacted")
	}
	return args
}

// stop kills all components, first those that would complain about the end of others.
func stop(ctx context.Context, journal Journal) error {
	for _, name := range slices.Backward(Components) {
		if rec, ok := journal.Process(name); ok {
			if err := rec.Stop(ctx, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchangeData puts the restored data in place and removes the old data. The two directories
// change places in one step: etcd would begin an empty cluster where it finds no data.
func (c Config) exchangeData() error {
	err := unix.Renameat2(unix.AT_FDCWD, c.restoredData(), unix.AT_FDCWD, c.data(), unix.RENAME_EXCHANGE)
	if err != nil {
		return fmt.Errorf("putting the restored data in place: %w", err)
	}
	return os.RemoveAll(c.restoredData())
}
