//go:build e2e && thorough

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
	"berth.dev/berth/test/writes"
)

var (
	roundsToPlay = flag.Int("rounds", len(faults), "rounds of failover")
	seed         = flag.Uint64("seed", 1, "from which the dice of the rounds are thrown")
	onlyFaults   = flag.String("faults", ".", "a pattern: only faults with such a name are played")
	results      = flag.String("results", os.DevNull, "file to which each round appends a line")
)

const (
	// takeover is how long another writer may take.
	takeover = 5 * time.Minute
	// again is within which time all must be as before a fault. Half of it is a node's boot.
	again = 5 * time.Minute
)

func TestRoundsOfFailoverLoseNothing(t *testing.T) {
	p := newPlayer(t)
	var deck []fault
	for n := 1; n <= *roundsToPlay; n++ {
		if len(deck) == 0 {
			deck = p.shuffled()
		}
		f := deck[0]
		deck = deck[1:]
		r := p.play(n, &f)
		t.Logf("round %d: %s: moved %v, booted %v, gap %.1f s, back %.1f s, %v, harm %q, failed %q",
			n, f.name, r.Moved, r.Rebooted, r.Gap, r.Back, r.Steps, r.Harm, r.Failed)
		if r.Failed != "" || len(r.Harm) > 0 {
			t.Errorf("seed %d, round %d, %s: %s %q", *seed, n, f.name, r.Failed, r.Harm)
		}
		p.must(rounds.Append(*results, r), "writing the result")
		if len(r.Harm) > 0 || !p.mended() {
			t.Fatalf("no further round can be played\n%s", p.picture(p.volume))
		}
	}
}

// labNodes are the nodes of the lab that have a console.
var labNodes = []string{"node1", "node2", "node3"}

// player plays rounds on one disk.
type player struct {
	*bench
	volume   *v1alpha1.Volume
	lun      string
	consoles *consoles
	dice     *rand.Rand
	nodes    []string
}

func newPlayer(t *testing.T) *player {
	p := &player{
		bench: beginFor(t, time.Duration(*roundsToPlay+2)*2*limit), nodes: labNodes,
		dice: rand.New(rand.NewPCG(*seed, 0)), //nolint:gosec // the dice are to be thrown again
	}
	p.consoles = followConsoles(p.bench, p.nodes)
	s := newSAN(p.bench)
	p.lun = s.backing()
	var claim *corev1.PersistentVolumeClaim
	p.volume, claim = s.volume("data-db-0", cluster.Raw)
	set := statefulSet("db", claim, recordsWrites)
	p.create(set)
	t.Cleanup(func() { p.remove(set) })
	if !p.mended() {
		t.Fatalf("the volume is not used by a pod\n%s", p.picture(p.volume))
	}
	return p
}

// recordsWrites makes a pod write records, and acknowledge them on its node's console.
func recordsWrites(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	c.Image, c.Command = "localhost/berth/writer:lab", []string{"/writer", "-console=/dev/ttyS0"}
	c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	for name, path := range map[string]string{"NODE_NAME": "spec.nodeName", "POD_UID": "metadata.uid"} {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
	}
	p.Spec.TerminationGracePeriodSeconds = new(int64(1))
}

// shuffled is a deck of all faults that are played.
func (p *player) shuffled() (deck []fault) {
	names := regexp.MustCompile(*onlyFaults)
	for _, f := range faults {
		if names.MatchString(f.name) {
			deck = append(deck, f)
		}
	}
	if len(deck) == 0 {
		p.Fatalf("no fault is called %q", *onlyFaults)
	}
	p.dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// round is one of them.
type round struct {
	*player
	fault  *fault
	result rounds.Round
	epoch  int64
	boot   string
	pod    *corev1.Pod
	term   int64
	rounds.Stations
}

// play plays one round, and leaves the cluster as it was, if it can.
func (p *player) play(n int, f *fault) rounds.Round {
	r := &round{player: p, fault: f, result: rounds.Round{Seed: *seed, Number: n, Fault: f.name}}
	ctx, cancel := context.WithTimeout(p.ctx, 2*limit+takeover+again)
	defer cancel()
	if err := r.run(ctx); err != nil {
		r.result.Failed = err.Error()
	}
	r.result.Steps = r.List()
	r.result.Harm = r.harm()
	return r.result
}

func (r *round) run(ctx context.Context) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	r.Begin(time.Now())
	if err := r.observe(ctx); err != nil {
		return err
	}
	err := r.fault.begin(ctx, r)
	if err == nil {
		err = r.lasts(ctx)
	}
	if r.fault.ends != nil {
		if failed := r.fault.ends(ctx, r); failed != nil {
			return failed
		}
	}
	if err != nil {
		return err
	}
	healed := time.Now()
	if err := rounds.Until(ctx, again, "all nodes can take over again", func() bool { return r.whole(ctx) && r.consoles.Since(healed) > 0 }); err != nil {
		return err
	}
	r.result.Back = time.Since(healed).Round(10 * time.Millisecond).Seconds()
	return r.judge(ctx)
}

// look notes what is before the fault.
func (r *round) look(ctx context.Context) error {
	if err := r.Get(ctx, client.ObjectKeyFromObject(r.volume), r.volume); err != nil {
		return err
	}
	o := r.volume.Status.Ownership
	r.epoch, r.result.Victim, r.boot, r.term = o.Epoch.Number, o.Primary.Node, o.Primary.Boot, r.consoles.Term()
	r.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "db-0"}}
	return r.Get(ctx, client.ObjectKeyFromObject(r.pod), r.pod)
}

// lasts waits for as long as the fault lasts.
func (r *round) lasts(ctx context.Context) error {
	if r.fault.to > 0 {
		d := r.fault.from + time.Duration(r.dice.Int64N(int64(r.fault.to-r.fault.from)+1))
		r.result.Seconds = d.Round(10 * time.Millisecond).Seconds()
		pause(ctx, d)
		return nil
	}
	return rounds.Until(ctx, takeover, "another writer has written", func() bool {
		_, written := r.consoles.After(r.term)
		return written
	})
}

// judge compares what happened with what the fault allows.
func (r *round) judge(ctx context.Context) error {
	if at, written := r.consoles.After(r.term); written {
		r.Reach(rounds.Written, at)
	}
	r.result.Gap = r.consoles.Gap(r.Began()).Round(time.Millisecond).Seconds()
	v := &v1alpha1.Volume{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(r.volume), v); err != nil {
		return err
	}
	r.result.Moved = v.Status.Ownership.Epoch.Number > r.epoch
	boot, err := r.Lab.OnNode(ctx, r.result.Victim, "cat", "/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	r.result.Rebooted = strings.TrimSpace(boot) != r.boot
	switch {
	case r.fault.moves == mustMove && !r.result.Moved:
		return fmt.Errorf("the volume did not move from %s", r.result.Victim)
	case r.fault.moves == mustStay && r.result.Moved:
		return fmt.Errorf("the volume moved from %s", r.result.Victim)
	case r.result.Rebooted && !r.fault.boots:
		return fmt.Errorf("%s booted", r.result.Victim)
	}
	return nil
}

// harm reads the disk of the target.
func (r *round) harm() []string {
	acks := r.consoles.All()
	r.result.Acknowledged = len(acks)
	disk, err := os.Open(r.lun)
	if err != nil {
		return []string{err.Error()}
	}
	defer disk.Close()
	v, err := writes.Judge(disk, 256<<20, acks)
	if err != nil {
		return []string{err.Error()}
	}
	r.result.Records = v.Records
	return v.Faults
}

// mended waits until a round can begin.
func (p *player) mended() bool {
	begin := time.Now()
	return rounds.Until(p.ctx, again, "a round can begin", func() bool {
		return p.whole(p.ctx) && p.consoles.Since(begin) >= 5
	}) == nil
}

// whole tells whether a pod writes, every node has the disk and may take over, and no writer is left on a
// node that is not the primary's.
func (p *player) whole(ctx context.Context) bool {
	v := &v1alpha1.Volume{}
	if p.Get(ctx, client.ObjectKeyFromObject(p.volume), v) != nil || !standbysAreReady(v) {
		return false
	}
	for _, node := range p.nodes {
		found, err := p.Lab.OnNode(ctx, node, "sh", "-c", initiator+"cat /sys/block/*/device/wwid 2>/dev/null; pgrep -x -l writer; true")
		if err != nil {
			return false
		}
		has := strings.Fields(found)
		if !slices.Contains(has, v.Spec.Replication.Attachments.Disk.Identity) ||
			slices.Contains(has, "writer") != (node == v.Status.Ownership.Primary.Node) {
			return false
		}
	}
	return true
}
