package linux

import (
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/mkfs"
	"berth.dev/berth/internal/run"
)

var _ provision.Mkfs = (*Mounter)(nil).Mkfs

// Mkfs is a provision.Mkfs; only provisioners may call it. A mounted device is ErrInUse.
func (m *Mounter) Mkfs(_ context.Context, v provision.Volume, filesystem, options string) error {
	return m.mkfs(v, filesystem, options)
}

// MkfsAs is Mkfs for a filesystem that gets an identity of its caller's: a UUID as text.
func (m *Mounter) MkfsAs(_ context.Context, v provision.Volume, filesystem, options, uuid string) error {
	identity, err := mkfs.Identified(filesystem, uuid)
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrInvalid, err)
	}
	return m.mkfs(v, filesystem, options, identity...)
}

func (m *Mounter) mkfs(v provision.Volume, filesystem, options string, identity ...string) error {
	args, err := mkfs.Args(filesystem, options)
	if err != nil {
		return fmt.Errorf("%w: mkfs option %w", provision.ErrInvalid, err)
	}
	source, err := identify(v.Content)
	if err != nil {
		return err
	}
	defer source.close()
	targets, err := users(source.number)
	if err != nil {
		return err
	}
	if len(targets) > 0 {
		return fmt.Errorf("%w: %s is mounted at %s", provision.ErrInUse, v.Content.Source, targets[0])
	}
	tool := "mkfs." + filesystem
	_, err = m.runner.Change(run.Command{Operation: tool, Program: tool, Args: slices.Concat(args, identity, []string{v.Content.Source})})
	return err
}
