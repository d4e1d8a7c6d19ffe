package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/process"
	"berth.dev/berth/lab/internal/progress"
)

// hostPrograms are the programs that the lab runs on the machine to make and run
// guests, with their Debian packages.
var hostPrograms = map[string]string{
	"qemu-system-x86_64": "qemu-system-x86",
	"qemu-img":           "qemu-utils",
	"debootstrap":        "debootstrap",
	"mke2fs":             "e2fsprogs",
	keyring:              "debian-archive-keyring",
}

const installTimeout = 10 * time.Minute

// installLock is the file that a lab locks while it installs packages: the machine has one set
// of packages, and apt-get fails while another apt-get runs.
const installLock = "/run/berth-lab-packages.lock"

// MissingPackages returns the Debian packages that the machine needs for guests
// and lacks.
func MissingPackages() []string { return Missing(hostPrograms) }

// Missing returns the Debian packages of the programs that the machine lacks. A program with
// an absolute path is any file.
func Missing(programs map[string]string) []string {
	return missing(programs, func(name string) bool {
		if strings.HasPrefix(name, "/") {
			_, err := os.Stat(name)
			return err == nil
		}
		_, err := process.Look(name)
		return err == nil
	})
}

func missing(programs map[string]string, present func(string) bool) []string {
	var packages []string
	for program, name := range programs {
		if !present(program) {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// InstallPackages installs Debian packages on the machine. It does nothing if there are none.
func InstallPackages(ctx context.Context, report progress.Reporter, packages []string) (err error) {
	if len(packages) == 0 {
		return nil
	}
	advice := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	if os.Geteuid() != 0 {
		return fmt.Errorf("the lab needs Debian packages that are not installed; as root, run: %s", advice)
	}
	step := report.Step("install " + strings.Join(packages, " "))
	defer func() { step.Done(err) }()
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, errors.New("it took more than "+installTimeout.String()))
	defer cancel()
	if err := install(ctx, step, installLock, packages); err != nil {
		return fmt.Errorf("installing what the lab needs: %w; try it yourself: %s", err, advice)
	}
	return nil
}

// install installs packages while it holds a lock. apt-get itself waits for other users of the
// package database, such as unattended upgrades.
func install(ctx context.Context, step progress.Step, lock string, packages []string) error {
	unlock, err := artefact.Lock(ctx, lock, func() { step.Note("another lab installs packages") })
	if err != nil {
		return err
	}
	defer unlock()
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, packages...),
	} {
		step.Note("apt-get %s", args[0])
		err := process.Run(ctx, process.Command{
			Path: "apt-get", Args: args,
			Env: []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
