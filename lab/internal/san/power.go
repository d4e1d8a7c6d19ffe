package san

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"berth.dev/berth/lab/internal/guest"
)

func (s *SAN) engine() engine {
	if s.record.Kind == LIO {
		return lio{s}
	}
	return tgt{s}
}

// Power returns whether the target is on.
func (s *SAN) Power() guest.Power { return s.engine().power() }

// Logs returns the log files of the target by their writer.
func (s *SAN) Logs() map[string]string { return s.engine().logs() }

// On starts the target with all its logical units, and does nothing if it is on.
func (s *SAN) On(ctx context.Context) error {
	if s.Power() != guest.Off {
		return nil
	}
	s.record.Latency = 0
	if err := s.save(); err != nil {
		return err
	}
	if err := s.engine().start(ctx); err != nil {
		return fmt.Errorf("starting the SAN: %w", err)
	}
	return nil
}

// Off ends the target at once, as a loss of power does. The content of the logical units
// stays.
func (s *SAN) Off(ctx context.Context) error {
	if err := s.engine().stop(ctx); err != nil {
		return fmt.Errorf("ending the SAN: %w", err)
	}
	return nil
}

// Restart ends the target and starts it again.
func (s *SAN) Restart(ctx context.Context) error {
	if err := s.Off(ctx); err != nil {
		return err
	}
	return s.On(ctx)
}

// Delay adds a delay to each answer of the target; 0 ends it.
func (s *SAN) Delay(ctx context.Context, d time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("latency %v: must not be negative", d)
	case s.Power() == guest.Off:
		return errors.New("the SAN is off: `lab san on` starts it")
	}
	if err := s.engine().delay(ctx, d); err != nil {
		return fmt.Errorf("latency of the SAN: %w", err)
	}
	s.record.Latency = d
	return s.save()
}

// Down ends the target and deletes it with the content of all its logical units.
func (s *SAN) Down(ctx context.Context) error {
	if err := s.Off(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the SAN: %w", err)
	}
	return nil
}
