package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/image"
)

// imageNamespace is where the kubelet's containers and images are in containerd.
const imageNamespace = "k8s.io"

// Guest is the part of a machine that loading images needs.
type Guest interface {
	Output(ctx context.Context, argv ...string) ([]byte, error)
	Pipe(ctx context.Context, stdin io.Reader, argv ...string) error
}

var _ Guest = (*guest.Machine)(nil)

// Missing returns the OCI archives whose images the node's containerd lacks, or has
// with other content under the same name. It asks the node once for all of them: a
// command takes a second there.
func Missing(ctx context.Context, g Guest, archives []string) (missing []string, err error) {
	list, err := g.Output(ctx, ctr("images", "list")...)
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	present := parseImages(string(list))
	for _, archive := range archives {
		wanted, err := image.Identify(archive)
		if err != nil {
			return nil, err
		}
		if !hasAll(present, wanted) {
			missing = append(missing, archive)
		}
	}
	return missing, nil
}

// Load puts the images of an OCI archive into the node's containerd.
func Load(ctx context.Context, g Guest, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("loading image: %w", err)
	}
	defer f.Close()
	if err := g.Pipe(ctx, f, ctr("images", "import", "-")...); err != nil {
		return fmt.Errorf("loading image archive %s: %w", archive, err)
	}
	// containerd does not wait for the disk; a node that crashes soon after
	// would have the image's name without its files.
	if _, err := g.Output(ctx, "sync"); err != nil {
		return fmt.Errorf("writing image to disk: %w", err)
	}
	return nil
}

func ctr(args ...string) []string {
	return append([]string{binDir + "/ctr", "--namespace", imageNamespace}, args...)
}

// parseImages reads the table of `ctr images list`: digest by name.
func parseImages(table string) map[string]string {
	images := map[string]string{}
	for line := range strings.Lines(table) {
		// REF TYPE DIGEST SIZE PLATFORMS LABELS
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			images[fields[0]] = fields[2]
		}
	}
	return images
}

func hasAll(present map[string]string, wanted []image.Identity) bool {
	for _, w := range wanted {
		if present[w.Ref] != w.Digest {
			return false
		}
	}
	return len(wanted) > 0
}
