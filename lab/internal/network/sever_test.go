package network

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheLostPartsAreReadFromTheFilter(t *testing.T) {
	got, err := parseSevered([]byte(`{"nftables": [{"metainfo": {}}, {"table": {"name": "berth_lab"}},
	  {"set": {"name": "san", "elem": ["tap-node2", "tap-node1"]}}, {"set": {"name": "peers"}},
	  {"set": {"name": "api", "elem": ["tap-node1"]}}]}`))
	want := map[string][]Part{"tap-node1": {API, SAN}, "tap-node2": {SAN}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if _, err := parseSevered([]byte("table bridge")); err == nil {
		t.Error("text that is no JSON was accepted")
	}
}

func TestOnlyPartsThatExistAreSevered(t *testing.T) {
	if err := Part("disk").Validate(); err == nil || !strings.Contains(err.Error(), "api, peers or san") {
		t.Errorf("got %v", err)
	}
}

func TestALinkIsWrittenAsNetemReadsIt(t *testing.T) {
	for want, l := range map[string]Link{
		"tc qdisc replace dev lan0 root netem delay 20000us":          {Delay: 20 * time.Millisecond},
		"tc qdisc replace dev lan0 root netem delay 2000us 500us":     {Delay: 2 * time.Millisecond, Jitter: 500 * time.Microsecond},
		"tc qdisc replace dev lan0 root netem loss 2.5%":              {Loss: 2.5},
		"tc qdisc replace dev lan0 root netem delay 1000us loss 100%": {Delay: time.Millisecond, Loss: 100},
	} {
		if got := strings.Join(l.Command("lan0"), " "); got != want {
			t.Errorf("%s: %q, want %q", l, got, want)
		}
	}
	if end := (Link{}).Command("lan0"); !slices.Contains(end, "lan0") || !strings.Contains(strings.Join(end, " "), "qdisc del") {
		t.Errorf("the zero link is %q", end)
	}
}

func TestLinksThatNetemWouldRefuseOrChangeAreRefused(t *testing.T) {
	for want, l := range map[string]Link{
		"delay":  {Delay: -1},
		"jitter": {Jitter: time.Second},
		"loss":   {Loss: 101},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if err := (Link{Delay: time.Second, Jitter: time.Second, Loss: 100}).Validate(); err != nil {
		t.Error(err)
	}
}
