package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/process"
)

// imagesSize is the space that containerd has for images and the containers' own layers.
// The file is sparse.
const imagesSize = "10G"

// MakeImages makes a disk image with the state of a containerd that has the
// images of some OCI archives, unless the file is there already. A node that
// starts with it has nothing to import, which is slow where the processor is
// emulated. containerd is the directory of its programs.
//
// It is no artefact of the store: images change with every build, and each disk
// is as large as all of them.
func MakeImages(ctx context.Context, file, containerd string, archives []string, log io.Writer) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "images-")
	if err != nil {
		return err
	}
	err = makeImages(ctx, dir, containerd, archives, log)
	if err == nil {
		err = os.Rename(filepath.Join(dir, "disk"), file)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func makeImages(ctx context.Context, dir, containerd string, archives []string, log io.Writer) error {
	tree := filepath.Join(dir, "tree")
	if err := importAll(ctx, tree, containerd, archives, log); err != nil {
		return err
	}
	return guest.MakeExt4(ctx, guest.Ext4{Tree: tree, Image: filepath.Join(dir, "disk"), Size: imagesSize}, log)
}

// importAll runs a containerd on this machine, at this machine's speed, that
// keeps its state in tree.
func importAll(ctx context.Context, tree, containerd string, archives []string, log io.Writer) (err error) {
	run, err := os.MkdirTemp("", "containerd-") // sockets need a short path
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(run)) }()
	config, socket := filepath.Join(run, "config.toml"), filepath.Join(run, "containerd.sock")
	if err := os.WriteFile(config, importer(tree, run, socket), 0o600); err != nil {
		return err
	}
	server, err := process.Start(ctx, process.Spec{
		Name: Containerd, Path: filepath.Join(containerd, "containerd"), Args: []string{"--config", config},
		Log: filepath.Join(run, "log"),
	})
	if err != nil {
		return err
	}
	// stop works even when ctx has ended.
	stop := func() error { return server.Stop(context.WithoutCancel(ctx), 20*time.Second) }
	if err := importInto(ctx, socket, filepath.Join(containerd, "ctr"), archives, log); err != nil {
		words, _ := os.ReadFile(filepath.Join(run, "log"))
		_, _ = log.Write(words)
		return errors.Join(err, stop())
	}
	return stop()
}

func importInto(ctx context.Context, socket, ctr string, archives []string, log io.Writer) error {
	if err := awaitSocket(ctx, socket); err != nil {
		return err
	}
	for _, archive := range archives {
		err := process.Run(ctx, process.Command{Path: ctr, Log: log,
			Args: []string{"--address", socket, "--namespace", imageNamespace, "images", "import", archive}})
		if err != nil {
			return fmt.Errorf("importing %s: %w", archive, err)
		}
	}
	return nil
}

func awaitSocket(ctx context.Context, socket string) error {
	const limit = time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("containerd does not answer after %v", limit))
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// kubeletPlugins of containerd serve the kubelet.
var kubeletPlugins = []string{"io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"}

// importer configures a containerd that takes images and runs nothing.
func importer(root, state, socket string) []byte {
	return fmt.Appendf(nil, `version = 4
root = %q
state = %q
disabled_plugins = [%s]
[plugins."io.containerd.server.v1.grpc"]
  address = %q
`, root, state, quoted(slices.Concat(unusedPlugins, kubeletPlugins)), socket)
}
