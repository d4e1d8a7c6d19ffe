package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func TestLifeEdges(t *testing.T) {
	edges := map[string][2]Life{
		"the provisioner starts to create":         {Pending, Creating},
		"the provisioner has created":              {Creating, Created},
		"the provisioner could not create":         {Creating, CreationFailed},
		"a crash while creating starts again":      {Creating, Pending},
		"the same request tries again":             {CreationFailed, Pending},
		"a larger size is asked for":               {Created, Updating},
		"it has grown, or crashed while it grew":   {Updating, Created},
		"it could not grow":                        {Updating, UpdateFailed},
		"it keeps its size until it is asked anew": {UpdateFailed, Created},
		"deleted before anything was made":         {Pending, Deleting},
		"deleted while it is made":                 {Creating, Deleting},
		"deleted after it could not be made":       {CreationFailed, Deleting},
		"deleted":                                  {Created, Deleting},
		"deleted while it grows":                   {Updating, Deleting},
		"deleted after it could not grow":          {UpdateFailed, Deleting},
		"the provisioner could not delete":         {Deleting, DeletionFailed},
		"deletion is tried again":                  {DeletionFailed, Deleting},
	}
	allowed := map[[2]Life]bool{}
	for name, e := range edges {
		allowed[e] = true
		t.Run(name, func(t *testing.T) {
			if !e[1].MayFollow(e[0]) {
				t.Errorf("%v may not follow %v", e[1], e[0])
			}
		})
	}
	for old := Pending; old <= DeletionFailed; old++ {
		for l := Pending; l <= DeletionFailed; l++ {
			if want := l == old || allowed[[2]Life{old, l}]; l.MayFollow(old) != want {
				t.Errorf("%v after %v: allowed %t, want %t", l, old, !want, want)
			}
		}
	}
}
