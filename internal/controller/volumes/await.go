package volumes

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"berth.dev/berth/api/v1alpha1"
)

// await follows a volume from v on until judge has a verdict about it. gone is
// true when the object was deleted meanwhile. The error is the context's,
// saying what was waited for.
func await(ctx context.Context, events *watcher, v *v1alpha1.Volume, judge func(*v1alpha1.Volume) verdict) (latest *v1alpha1.Volume, answer verdict, gone bool, err error) {
	for {
		answer = judge(v)
		if answer.outcome != waiting {
			return v, answer, false, nil
		}
		e, err := events.next(ctx)
		if err != nil {
			return v, answer, false, fmt.Errorf("%s: %w", pending(v, answer), err)
		}
		switch {
		case e.deleted && e.volume.UID == v.UID:
			return v, answer, true, nil
		case !newer(e.volume, v):
			// An event from before the write that this call waits on.
		case e.volume.UID != v.UID:
			return v, answer, true, nil
		default:
			v = e.volume
		}
	}
}

func pending(v *v1alpha1.Volume, answer verdict) string {
	if answer.node == "" {
		return "waiting for volume " + v.Name
	}
	return fmt.Sprintf("waiting for node %s to answer for volume %s", answer.node, v.Name)
}

// newer compares the versions of two objects of one kind. What cannot be
// compared counts as newer: looking once too often is harmless.
func newer(a, b *v1alpha1.Volume) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}
