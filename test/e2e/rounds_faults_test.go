//go:build e2e && thorough

package e2e

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	moving "berth.dev/berth/internal/failover"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
)

// outcome is whether a fault takes the volume to another node.
type outcome int

const (
	mayMove outcome = iota
	mustMove
	mustStay
)

// fault is what meets the node that writes.
type fault struct {
	name  string
	moves outcome
	// boots: the node may boot.
	boots       bool
	begin, ends func(ctx context.Context, r *round) error
	// from and to bound how long the fault lasts; the dice choose. Zero is until another writer has written.
	from, to time.Duration
}

// faults are all that are played. A kill lasts as long as it takes to see that nothing else happens.
var faults = []fault{
	{name: rounds.Planned, moves: mustMove, begin: all(cordons(true), evict), ends: cordons(false)},
	{name: "power off", moves: mustMove, boots: true, begin: lab("power", "off"), ends: lab("power", "on")},
	{name: "network cut", moves: mustMove, begin: lab("cut"), ends: lab("heal")},
	{name: "pause", begin: lab("pause"), ends: lab("resume"), boots: true, from: 5 * time.Second, to: 60 * time.Second},
	{name: "frozen with its clocks", begin: lab("pause", "--freeze-clock"), ends: lab("resume"), boots: true, from: 5 * time.Second, to: 60 * time.Second},
	{name: "cut from the API", moves: mustMove, begin: part("cut", "api"), ends: part("heal", "api")},
	{name: "cut from the SAN", begin: part("cut", "san"), ends: part("heal", "san"), from: 5 * time.Second, to: 40 * time.Second},
	{name: "cut from the peers", moves: mustStay, begin: part("cut", "peers"), ends: part("heal", "peers"), from: 40 * time.Second, to: 60 * time.Second},
	{name: "agent killed", moves: mustStay, begin: kill("-f", "berth agent --driver=disk"), from: 20 * time.Second, to: 20 * time.Second},
	{name: "guard killed", boots: true, begin: kill("-f", "berth guard"), from: 40 * time.Second, to: 40 * time.Second},
	{name: "kubelet killed", moves: mustStay, begin: kill("-x", "kubelet"), from: 20 * time.Second, to: 20 * time.Second},
	{name: "controllers killed", moves: mustStay, begin: killControllers, from: 20 * time.Second, to: 20 * time.Second},
	{name: "target restarted", moves: mustStay, begin: restartTarget, from: 10 * time.Second, to: 10 * time.Second},
	{name: "power off, controllers killed", moves: mustMove, boots: true, begin: all(lab("power", "off"), later(15*time.Second, killControllers)), ends: lab("power", "on")},
	{name: "power off, target restarted", moves: mustMove, boots: true, begin: all(lab("power", "off"), later(10*time.Second, restartTarget)), ends: lab("power", "on")},
	{name: "network cut, Node deleted", moves: mustMove, begin: all(lab("cut"), deleteNode), ends: all(lab("heal"), kill("-x", "kubelet"))},
	{name: "network cut, healed when a standby is asked", begin: all(lab("cut"), asked, lab("heal")), ends: lab("heal"), from: 20 * time.Second, to: 20 * time.Second},
	{name: "power off and on at once", boots: true, begin: all(lab("power", "off"), lab("power", "on")), from: 10 * time.Second, to: 10 * time.Second},
	{name: "agent killed, cut from the peers", moves: mustStay, begin: all(kill("-f", "berth agent --driver=disk"), part("cut", "peers")), ends: part("heal", "peers"), from: 40 * time.Second, to: 40 * time.Second},
}

// cordons marks the victim as one to which no pod goes.
func cordons(is bool) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error { return cluster.Cordon(ctx, r.bench, r.result.Victim, is) }
}

func evict(ctx context.Context, r *round) error {
	r.Begin(time.Now())
	return moving.Evict(ctx, r.bench, r.pod)
}

// lab is a command of the lab's about the victim.
func lab(args ...string) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		_, err := r.Lab.Output(ctx, append(args, r.result.Victim)...)
		return err
	}
}

// part cuts or heals a part of the victim's network.
func part(verb, from string) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		_, err := r.Lab.Output(ctx, verb, r.result.Victim, "--from", from)
		return err
	}
}

// kill ends processes on the victim, of which at least one must be there.
func kill(which ...string) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		_, err := r.Lab.OnNode(ctx, r.result.Victim, append([]string{"pkill", "-KILL"}, which...)...)
		return err
	}
}

func killControllers(ctx context.Context, r *round) error {
	return r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("berth-system"),
		client.MatchingLabels{"app.kubernetes.io/component": "disk-controller"}, client.GracePeriodSeconds(0))
}

// asked waits until a standby is to shut the victim out. It will have done so when the victim notices that it is back.
func asked(ctx context.Context, r *round) error {
	return rounds.Until(ctx, takeover, "a standby is asked", func() bool {
		return slices.ContainsFunc(r.List(), func(s rounds.Step) bool { return s.Name == rounds.Asked })
	})
}

func restartTarget(ctx context.Context, r *round) error {
	_, err := r.Lab.Output(ctx, "san", "restart")
	return err
}

func deleteNode(ctx context.Context, r *round) error {
	node := &corev1.Node{}
	node.Name = r.result.Victim
	return r.Delete(ctx, node)
}

func all(do ...func(context.Context, *round) error) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		for _, each := range do {
			if err := each(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// later waits for as long as the dice say.
func later(atMost time.Duration, do func(context.Context, *round) error) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		pause(ctx, time.Duration(r.dice.Int64N(int64(atMost))))
		return do(ctx, r)
	}
}

// pause lets a fault last.
func pause(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-ctx.Done():
	case <-over.C:
	}
}
