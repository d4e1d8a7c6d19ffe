package usecase

import "berth.dev/berth/api/v1alpha1"

// A Snapshot is annotated with the shape of its volume, which may be gone when the
// first volume is made from it.
const (
	modeAnnotation   = "berth.dev/volume-mode"
	fsTypeAnnotation = "berth.dev/fs-type"
)

// NoteShape annotates a Snapshot with the shape of its volume.
func NoteShape(s *v1alpha1.Snapshot, v *v1alpha1.Volume) {
	s.Annotations = map[string]string{modeAnnotation: string(v.Spec.VolumeMode)}
	if v.Spec.FSType != "" {
		s.Annotations[fsTypeAnnotation] = string(v.Spec.FSType)
	}
}

// NotedShape is what NoteShape wrote; empty for a Snapshot that was made by hand.
func NotedShape(s *v1alpha1.Snapshot) (v1alpha1.VolumeMode, v1alpha1.FSType) {
	return v1alpha1.VolumeMode(s.Annotations[modeAnnotation]), v1alpha1.FSType(s.Annotations[fsTypeAnnotation])
}
