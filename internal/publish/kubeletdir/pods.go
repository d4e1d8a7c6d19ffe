package kubeletdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"berth.dev/berth/internal/provision"
)

// The kubelet keeps the CSI volumes of a pod, by the names they have in the pod's
// spec, in pods/<uid>/volumes/kubernetes.io~csi/<name>, and has them mounted at
// "mount" in there.
const (
	pods      = "pods"
	inPod     = "volumes/kubernetes.io~csi"
	mountName = "mount"
	// published has the raw block volumes of pods, by volume and pod.
	published = "plugins/kubernetes.io/csi/volumeDevices/publish"
)

// PodVolume says which volume of which pod a target path of the kubelet's is for.
func (d Dir) PodVolume(target string) (podUID, name string, err error) {
	if err := d.Check(target); err != nil {
		return "", "", err
	}
	parts := strings.Split(strings.TrimPrefix(target, d.dir+"/"), "/")
	if len(parts) != 6 || parts[0] != pods || parts[2]+"/"+parts[3] != inPod || parts[5] != mountName {
		return "", "", fmt.Errorf("%w: %.200q is not where the kubelet has a pod's volume mounted", provision.ErrInvalid, target)
	}
	return parts[1], parts[4], nil
}

// PodOf returns the UID of the pod whose volume is at a target path, a filesystem or a raw block volume; empty if it
// is no pod's path.
func (d Dir) PodOf(target string) string {
	parts := strings.Split(strings.TrimPrefix(target, d.dir+"/"), "/")
	switch n := len(parts); {
	case n > 1 && parts[0] == pods:
		return parts[1]
	case n > 1 && strings.Join(parts[:n-2], "/") == published:
		return parts[n-1]
	}
	return ""
}

// HasPodVolume says whether the kubelet still keeps a volume of a pod. An error
// means that this is not known. It looks for the mount point and not for the directory
// around it: that may stay for ever, with the kubelet's notes in it, if the machine was
// lost while the kubelet tore the volume down.
func (d Dir) HasPodVolume(podUID, name string) (bool, error) {
	if !plain(podUID) || !plain(name) {
		return false, fmt.Errorf("%w: %.64q of pod %.64q is no volume of a pod", provision.ErrInvalid, name, podUID)
	}
	return d.has(filepath.Join(d.dir, pods, podUID, inPod, name, mountName))
}

// Has says whether the kubelet still keeps a target path. What cannot be told counts as kept.
func (d Dir) Has(target string) bool {
	there, err := d.has(target)
	return there || err != nil
}

func (d Dir) has(target string) (bool, error) {
	_, err := os.Lstat(target)
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("looking for the pod's volume: %w", err)
	}
	// Without a directory of pods this is not the kubelet's directory, or it is not
	// mounted: that proves nothing.
	if _, err := os.Lstat(filepath.Join(d.dir, pods)); err != nil {
		return false, fmt.Errorf("looking for the kubelet's pods: %w", err)
	}
	return false, nil
}

func plain(part string) bool {
	return part != "" && part != "." && part != ".." && !strings.ContainsRune(part, '/')
}
