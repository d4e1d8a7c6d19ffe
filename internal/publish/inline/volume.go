package inline

import (
	"fmt"
	"regexp"

	"berth.dev/berth/internal/provision"
)

// handle matches the ids that the kubelet gives to inline volumes: a hash of pod and name.
// No volume that a controller made has such an id.
var handle = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// IsHandle says whether a CSI volume id is the kubelet's for an inline volume.
func IsHandle(id string) bool { return handle.MatchString(id) }

// idLength is how many digits of the kubelet's hash go into the id: 160 bits.
const idLength = 40

// ID returns the id on the node of an inline volume with that handle.
func ID(handle string) string { return provision.InlinePrefix + handle[len("csi-"):][:idLength] }

// volume is an inline volume by its id on the node, and its owner.
type volume struct {
	id    string
	owner provision.Inline
}

// identify reads a request. Handle and target have to name one volume, and the
// target says whose it is.
func (s *Service) identify(h, target string) (volume, error) {
	if !IsHandle(h) {
		return volume{}, fmt.Errorf("%w: %.80q is not the kubelet's id of an inline volume", provision.ErrInvalid, h)
	}
	pod, name, err := s.kubelet.PodVolume(target)
	if err != nil {
		return volume{}, err
	}
	return volume{
		id:    ID(h),
		owner: provision.Inline{PodUID: pod, Name: name},
	}, nil
}

func (v volume) String() string {
	return fmt.Sprintf("inline volume %s of pod %s (%s)", v.owner.Name, v.owner.PodUID, v.id)
}
