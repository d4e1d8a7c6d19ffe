package v1alpha1

import "time"

// TrimEvery returns how often the filesystems of a class's volumes are trimmed; zero is never.
func (c *PoolClass) TrimEvery() time.Duration {
	if c == nil || c.Spec.TrimInterval == nil {
		return 0
	}
	return c.Spec.TrimInterval.Duration
}
