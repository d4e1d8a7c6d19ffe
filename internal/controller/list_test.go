package controller_test

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

func contains(page []volumes.Volume, id string) bool {
	return slices.ContainsFunc(page, func(v volumes.Volume) bool { return v.ID == id })
}

func TestPagesHoldEveryVolumeOnceWhileOthersComeAndGo(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 20*gi)
	p := controllertest.Start(t, c.Environment)
	var stay []string
	for range 5 {
		stay = append(stay, mustCreate(t, p, c.request(n)).ID)
	}
	goes := mustCreate(t, p, c.request(n)).ID

	seen := map[string]int{}
	token := ""
	for page := 0; page == 0 || token != ""; page++ {
		list, next, err := p.Volumes.List(within(t), token, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 2 {
			t.Errorf("a page of %d, asked for 2", len(list))
		}
		for _, v := range list {
			seen[v.ID]++
		}
		if page == 0 {
			mustDelete(t, p, goes)
			mustCreate(t, p, c.request(n))
		}
		token = next
	}
	for _, id := range stay {
		if seen[id] != 1 {
			t.Errorf("volume %s was listed %d times", id, seen[id])
		}
	}
}

func TestCapacityIsTheRoomThatTheNextCreateWouldFind(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, "a", 10*gi), c.node(t, "b", 5*gi)
	p := controllertest.Start(t, c.Environment)
	mustCreate(t, p, c.request(a))

	room, err := p.Volumes.Capacity(within(t), c.class, nil)
	if err != nil || room != (volumes.Capacity{Total: 14 * gi, Largest: 9 * gi}) {
		t.Errorf("everywhere: %+v, %v", room, err)
	}
	room, err = p.Volumes.Capacity(within(t), c.class, []string{b.Name})
	if err != nil || room != (volumes.Capacity{Total: 5 * gi, Largest: 5 * gi}) {
		t.Errorf("on %s: %+v, %v", b.Name, room, err)
	}
}
