package report

import (
	"fmt"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	size "berth.dev/berth/internal/quantity"
)

// summed is how many pools a summary names. Their names and more would not fit into a line.
const summed = 3

// summary puts the pools of a report into a line.
func summary(described []v1alpha1.Pool) *v1alpha1.StorageNodeSummary {
	if len(described) == 0 {
		return nil
	}
	var words []string
	largest := int64(0)
	for i, p := range described {
		largest = max(largest, p.LargestVolume.Value())
		switch {
		case i >= summed:
		case p.Health != v1alpha1.PoolHealthy:
			words = append(words, p.Name+" "+string(p.Health))
		default:
			words = append(words, p.Name+" "+size.Bytes(p.Total.Value()))
		}
	}
	if more := len(described) - summed; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return &v1alpha1.StorageNodeSummary{Pools: strings.Join(words, ", "), LargestVolume: size.Bytes(largest)}
}
