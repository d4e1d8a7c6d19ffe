package install

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// values returns the values for the chart beside the lab's file. The tag of an image never
// changes, so the values contain digests: new digests make new pods.
func (c Config) values() ([]string, error) {
	values := slices.Clone(c.Set)
	if c.extended() {
		values = append(values, "extender.tlsSecret="+extenderSecret, "extender.clientCASecret="+clientSecret)
	}
	parts := []string{"agent", "controller"}
	if slices.Contains(c.Set, Scheduler) {
		parts = append(parts, "scheduler")
	}
	for _, part := range parts {
		sum, err := digest(filepath.Join(c.Root, "bin", "images", part+".tar"))
		if err != nil {
			return nil, err
		}
		values = append(values, part+".podAnnotations.image="+sum)
	}
	return values, nil
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading an image: %w", err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("reading image %s: %w", path, err)
	}
	return fmt.Sprintf("sha256-%x", hash.Sum(nil)[:8]), nil
}
