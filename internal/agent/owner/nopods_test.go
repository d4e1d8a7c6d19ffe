package owner_test

import "context"

// noPods is the part of a World that is about pods which lost their volume, and filesystems that shut themselves
// down, where none does.
type noPods struct{}

func (noPods) There([]string) []string                           { return nil }
func (noPods) Begun(context.Context, []string) ([]string, error) { return nil, nil }
func (noPods) Uncover(context.Context, string) error             { return nil }
func (noPods) ShutDowns() []string                               { return nil }
