package guest

import (
	"context"
	"fmt"
	"path/filepath"

	"berth.dev/berth/lab/internal/artefact"
)

// Image is the set of files that all guests share. Nothing writes to them.
type Image struct {
	Kernel    string `json:"kernel"`
	Initramfs string `json:"initramfs"`
	Root      string `json:"root"` // raw ext4
}

// GetImage returns the image, and makes the parts that are not in the store yet. That
// takes about two minutes the first time.
func GetImage(ctx context.Context, store *artefact.Store) (Image, error) {
	return getImage(ctx, store, rootRecipe())
}

// GetZFSImage is GetImage for guests that also have ZFS. The first time it takes about ten
// minutes more, for the kernel modules.
func GetZFSImage(ctx context.Context, store *artefact.Store) (Image, error) {
	base, err := zfsRootRecipe(ctx, store)
	if err != nil {
		return Image{}, err
	}
	return getImage(ctx, store, base)
}

func getImage(ctx context.Context, store *artefact.Store, base artefact.Recipe) (Image, error) {
	root, err := store.Get(ctx, base)
	if err != nil {
		return Image{}, err
	}
	initramfs, err := initramfsRecipe(root, base)
	if err != nil {
		return Image{}, fmt.Errorf("preparing the guests' initramfs: %w", err)
	}
	boot, err := store.Get(ctx, initramfs)
	if err != nil {
		return Image{}, err
	}
	return Image{
		Kernel:    filepath.Join(root, kernelFile),
		Initramfs: filepath.Join(boot, initramfsFile),
		Root:      filepath.Join(root, rootFile),
	}, nil
}
