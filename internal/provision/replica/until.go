package replica

import (
	"context"
	"time"
)

// Until makes calls that wait for a pipe return once ctx ends, by one of the pipe's functions that set
// a deadline. The caller calls stop when it is done with the pipe.
func Until(ctx context.Context, set func(time.Time) error) (stop func()) {
	ended := context.AfterFunc(ctx, func() { _ = set(time.Unix(1, 0)) })
	return func() { ended() }
}
