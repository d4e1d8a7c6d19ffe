package word

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// asked is how often an agent asks whether the guard waits for its word.
const asked = 5 * time.Second

// Vouch gives the guard the word of an agent that opens no epochs: that it has closed every one. It
// gives it whenever the guard is fenced, until ctx ends.
func (c Client) Vouch(ctx context.Context, k clock.WithTicker, log logr.Logger) {
	ticker := k.NewTicker(asked)
	defer ticker.Stop()
	for {
		if err := c.vouch(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "the guard of this node does not have the agent's word, so the node looks dead to other nodes")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (c Client) vouch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	status, err := c.Status(ctx)
	if err != nil || !status.Fenced {
		return err
	}
	return c.Closed(ctx)
}
