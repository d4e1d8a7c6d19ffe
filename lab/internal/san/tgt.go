package san

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/process"
)

const (
	tgtLog = "tgtd.log"
	// The path is relative to the target's directory: the kernel allows a socket 107 bytes.
	tgtSocket = "TGT_IPC_SOCKET=tgtd.sock"
	// tgtTimeout is how long tgtd may take until it answers.
	tgtTimeout = 10 * time.Second
)

// TGTPackages are the Debian packages that the machine needs for [TGT], by program.
var TGTPackages = map[string]string{"tgtd": "tgt", "tgtadm": "tgt"}

// tgt is a target that is a process of this machine.
type tgt struct{ *SAN }

func (t tgt) power() guest.Power {
	if t.record.Process.Alive() {
		return guest.On
	}
	return guest.Off
}

func (t tgt) logs() map[string]string {
	return map[string]string{"tgtd": filepath.Join(t.dir, tgtLog)}
}

func (t tgt) start(ctx context.Context) error {
	started, err := process.Start(ctx, process.Spec{
		Name: "san", Path: "tgtd", NetNS: t.netns, Dir: t.dir, Log: filepath.Join(t.dir, tgtLog), Env: []string{tgtSocket},
		Args: []string{"--foreground", "--iscsi", fmt.Sprintf("portal=%s:%d", network.SANAddress, Port)},
	})
	if err != nil {
		return err
	}
	t.record.Process = started
	if err := t.save(); err != nil {
		return err
	}
	if err := t.awaitAnswer(ctx); err != nil {
		return errors.Join(err, t.stop(context.WithoutCancel(ctx)))
	}
	for _, args := range tgtTarget() {
		if err := t.admin(ctx, args...); err != nil {
			return err
		}
	}
	for _, l := range t.LUNs() {
		if err := t.offer(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (t tgt) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tgtTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := t.admin(ctx, "--mode", "system", "--op", "show")
		if err == nil {
			return nil
		}
		if !t.record.Process.Alive() {
			return fmt.Errorf("tgtd has ended: read its log %s", filepath.Join(t.dir, tgtLog))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("tgtd does not answer: %w", err)
		case <-tick.C:
		}
	}
}

func (t tgt) stop(ctx context.Context) error { return t.record.Process.Stop(ctx, 0) }

func (t tgt) offer(ctx context.Context, l LUN) error {
	for _, args := range tgtOffer(l) {
		if err := t.admin(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// withdraw succeeds while an initiator has the unit open, and fails while a command is under way.
func (t tgt) withdraw(ctx context.Context, l LUN) error {
	if t.power() == guest.Off {
		return nil
	}
	err := t.admin(ctx, "--mode", "logicalunit", "--op", "delete", "--tid", "1", "--lun", fmt.Sprint(l.Number))
	if err != nil && strings.Contains(err.Error(), "can't find the logical unit") {
		return nil
	}
	return err
}

func (t tgt) delay(context.Context, time.Duration) error {
	return errors.New("tgtd has no delay: use a SAN of kind lio")
}

func (t tgt) admin(ctx context.Context, args ...string) error {
	return process.Run(ctx, process.Command{
		Path: "tgtadm", Dir: t.dir, Env: []string{tgtSocket}, Args: append([]string{"--lld", "iscsi"}, args...),
	})
}

// tgtTarget returns the commands that make a target that any initiator may use.
func tgtTarget() [][]string {
	return [][]string{
		{"--mode", "target", "--op", "new", "--tid", "1", "--targetname", Target},
		{"--mode", "target", "--op", "bind", "--tid", "1", "--initiator-address", "ALL"},
	}
}

// tgtOffer returns the commands that offer a logical unit. The serial number comes after
// the unit is made, and must be there before an initiator looks at it for the first time.
func tgtOffer(l LUN) [][]string {
	number := fmt.Sprint(l.Number)
	return [][]string{
		{"--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", number, "--backing-store", l.File},
		{"--mode", "logicalunit", "--op", "update", "--tid", "1", "--lun", number,
			"--params", fmt.Sprintf("vendor_id=BERTH,product_id=lab,scsi_sn=%s,scsi_id=%s", l.Serial, l.Serial)},
	}
}
