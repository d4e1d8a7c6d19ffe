package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func TestLifeEdges(t *testing.T) {
	edges := map[string][2]Life{
		"the provisioner starts to create":                               {Pending, Creating},
		"the provisioner has created":                                    {Creating, Created},
		"the provisioner could not create":                               {Creating, CreationFailed},
		"a crash while creating starts again":                            {Creating, Pending},
		"the same request tries again":                                   {CreationFailed, Pending},
		"the user asks for a larger size":                                {Created, Updating},
		"the volume has grown, or the process crashed during the growth": {Updating, Created},
		"the volume could not grow":                                      {Updating, UpdateFailed},
		"the volume keeps the size until a new request":                  {UpdateFailed, Created},
		"deleted before the creation began":                              {Pending, Deleting},
		"deleted during the creation":                                    {Creating, Deleting},
		"deleted after the creation failed":                              {CreationFailed, Deleting},
		"deleted":                                                        {Created, Deleting},
		"deleted during the growth":                                      {Updating, Deleting},
		"deleted after the growth failed":                                {UpdateFailed, Deleting},
		"the provisioner could not delete":                               {Deleting, DeletionFailed},
		"deletion is tried again":                                        {DeletionFailed, Deleting},
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
