// Package inline makes and removes the inline volumes of a node's pods: volumes
// that a pod's spec describes, and that live and die with the pod.
//
// No API object stands for such a volume. Its state is on the node:
//
//	the provisioner's record  which volume of which pod it is, made with the data
//	the mark                  a file that says that the data was handed to its pod
//	the mount table           whether it is in use
//	the kubelet's directory   whether the kubelet still keeps it
//
//	        Create, Format          Mark, Mount
//	(none) ───────────────► made ───────────────► in use
//	   ▲                                             │
//	   └── Unmark ◄── Delete ◄── Unmount ────────────┘
//
// What the package guarantees:
//
//   - A volume is made once. A mark without data means that data was lost: the pod
//     gets an error and never an empty volume in its place. Publish sets the mark before
//     the first mount, and removal deletes the mark after the data. So no crash can hide a
//     loss.
//   - A volume is used and removed only by the pod that its record names.
//   - The kubelet may fail to unpublish a volume, because it or the node died. Such a
//     volume is removed once the kubelet and the API server agree that the pod is gone
//     from the node: the kubelet keeps no directory for the volume any more, and the API
//     server, read live, has no such pod. If one of them does not answer, that proves
//     nothing.
//   - Removal never waits for a pod, and the end of a pod never for removal: data that
//     cannot be deleted now is left to the sweep, and counts in the node's
//     inventory until it is gone.
package inline
