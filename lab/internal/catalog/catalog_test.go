package catalog

import (
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/image"
)

func TestTheArchiveHoldsTheImageItIsNamedFor(t *testing.T) {
	archives, err := Get(t.Context(), &artefact.Store{Dir: t.TempDir()}, Pause)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := image.Identify(archives[0].Path)
	if err != nil || len(ids) != 1 || ids[0].Ref != Pause || archives[0].Ref != Pause {
		t.Errorf("%+v holds %v, %v", archives, ids, err)
	}
}

func TestAnUnknownImageIsRefusedBeforeAnythingIsBuilt(t *testing.T) {
	_, err := Get(t.Context(), &artefact.Store{Dir: t.TempDir()}, Provisioner, "localhost/nothing:1")
	if err == nil || !strings.Contains(err.Error(), "localhost/nothing:1") {
		t.Errorf("error is %v", err)
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources {
		if seen[s.ref] || seen[s.name] {
			t.Errorf("%s or %s is used twice", s.ref, s.name)
		}
		seen[s.ref], seen[s.name] = true, true
		if err := (image.Spec{Ref: s.ref, Links: []image.Link{{Path: "/x", Target: "y"}}}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestImagesThatAreBuiltFromSourceNeedNoPackages(t *testing.T) {
	if got := MissingPackages(Pause, Provisioner); len(got) > 0 {
		t.Errorf("%v are said to be missing", got)
	}
}
