package lvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/run"
)

var (
	errNoAnswer = errors.New("no answer in time")
	errBehind   = errors.New("a process of LVM waits for a disk that does not answer, and cannot be ended: look for processes in state D, and at the kernel's log")
)

// killPatience is how long a query that was killed may take to end.
const killPatience = time.Second

// ask runs a query for as long as LVM may take. Every command of LVM looks at every disk,
// and the kernel does not let go of a process that waits for one that does not answer: such a
// process is left behind. As long as there is one nobody else is sent after it.
func (p *Provisioner) ask(ctx context.Context, c run.Command) ([]byte, error) {
	if p.behind.Load() > 0 {
		return nil, fmt.Errorf("asking LVM for a report: %w", errBehind)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.QueryTimeout, errNoAnswer)
	defer cancel()
	type result struct {
		out []byte
		err error
	}
	answer := make(chan result, 1)
	go func() {
		out, err := p.config.Runner.Query(ctx, c)
		answer <- result{out, err}
	}()
	var got result
	select {
	case got = <-answer:
	case <-ctx.Done():
		killed := time.NewTimer(killPatience)
		defer killed.Stop()
		select {
		case got = <-answer:
		case <-killed.C:
			got.err = context.Cause(ctx)
			p.behind.Add(1)
			go func() {
				<-answer
				p.behind.Add(-1)
			}()
		}
	}
	if got.err != nil {
		return nil, fmt.Errorf("asking LVM for a report: %w", got.err)
	}
	return got.out, nil
}
