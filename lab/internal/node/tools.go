package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/guest"
)

// Programs are the host's files that go on the tools disk.
type Programs struct {
	Kubelet    string
	KubeProxy  string
	Runc       string
	Containerd string // directory with containerd, containerd-shim-runc-v2 and ctr
	CNI        string // directory with bridge, host-local and loopback
}

// Files returns the source of each file by its path below the disk's root.
func (p Programs) Files() map[string]string {
	files := map[string]string{
		"bin/kubelet":    p.Kubelet,
		"bin/kube-proxy": p.KubeProxy,
		"bin/runc":       p.Runc,
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		files["bin/"+name] = filepath.Join(p.Containerd, name)
	}
	for _, name := range []string{"bridge", "host-local", "loopback"} {
		files["cni/"+name] = filepath.Join(p.CNI, name)
	}
	return files
}

const toolsFile = "tools.img"

// Tools returns the disk image with the programs of a node, making it first if
// the store has none with the same content.
func Tools(ctx context.Context, store *artefact.Store, p Programs) (string, error) {
	files := p.Files()
	key := []string{"layout 1"}
	var total int64
	for _, place := range slices.Sorted(maps.Keys(files)) {
		sum, size, err := digest(files[place])
		if err != nil {
			return "", fmt.Errorf("reading the programs of a node: %w", err)
		}
		key = append(key, place+" "+sum)
		total += size
	}
	dir, err := store.Get(ctx, artefact.Recipe{
		Name: "node-tools",
		Key:  key,
		Make: func(ctx context.Context, dir string, log io.Writer) error {
			return makeTools(ctx, dir, files, total, log)
		},
	})
	return filepath.Join(dir, toolsFile), err
}

func makeTools(ctx context.Context, dir string, files map[string]string, total int64, log io.Writer) error {
	tree := filepath.Join(dir, "tree")
	for place, source := range files {
		if err := copyFile(source, filepath.Join(tree, place)); err != nil {
			return fmt.Errorf("copying %s: %w", place, err)
		}
	}
	size := total + total/8 + 32<<20 // room for the filesystem's own tables
	image := guest.Ext4{Tree: tree, Image: filepath.Join(dir, toolsFile), Size: fmt.Sprintf("%dk", size>>10), ReadOnly: true}
	if err := guest.MakeExt4(ctx, image, log); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

func digest(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), size, err
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
