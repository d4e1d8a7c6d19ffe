package plugin

import "context"

// Moved is whether the sources of a refused pod's claims have changed in a way that
// matters to it: one has come, has gone, or is where the pod fits.
func Moved(ctx context.Context, book Book, reader Reader, refused Refused) (bool, error) {
	if len(refused.want.Sources) == 0 {
		return false, nil
	}
	want, err := reader.Read(ctx, refused.Pod)
	if err != nil || want == nil || want.Unready != refused.want.Unready {
		return true, err
	}
	var nodes []string
	for _, source := range want.Sources {
		nodes = append(nodes, source.Nodes()...)
	}
	return fits(book, want, refused.Pod, nodes), nil
}
