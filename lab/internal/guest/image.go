package guest

import (
	"context"
	"fmt"
	"path/filepath"

	"berth.dev/berth/lab/internal/artefact"
)

// Image is what all guests have in common. Its files are never written to.
type Image struct {
	Kernel    string `json:"kernel"`
	Initramfs string `json:"initramfs"`
	Root      string `json:"root"` // raw ext4
}

// GetImage returns the image, making what is not in the store yet: about two
// minutes the first time.
func GetImage(ctx context.Context, store *artefact.Store) (Image, error) {
	return getImage(ctx, store, rootRecipe())
}

// GetZFSImage is GetImage for guests that have ZFS besides: about ten minutes more
// the first time, for its kernel modules.
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
