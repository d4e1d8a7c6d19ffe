package staging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
)

var (
	errElsewhere = errors.New("another node writes the volume")
	errCrash     = errors.New("the process has died")
)

// register is an Owner whose word is durable, on a node that notes each operation. It breaks a
// test that looks at a volume which is not taken, or gives up one which is mounted.
type register struct {
	t    *testing.T
	node *node
	// taken is the durable state; refuses is the answer to Take, or refusing gives it.
	taken    bool
	refuses  error
	refusing func() error
	// log has the operations on the volume, and those of the register.
	log []string
	// fetching, if set, is called while data is fetched.
	fetching func(ctx context.Context) error
	// dies is the number of the operation that the process does not survive; 0 for none.
	dies int
}

var _ Owner = (*register)(nil)

// registered is a node with a volume, and a register of it. An empty filesystem is raw block.
func registered(t *testing.T, fs string) (*node, *register) {
	t.Helper()
	n := newNode(t)
	n.volume(t, id, fs)
	r := &register{t: t, node: n}
	n.owner, n.seen = r, r.note
	n.restart()
	return n, r
}

// note notes an operation before it happens.
func (r *register) note(operation string) error {
	if r.dies > 0 && len(r.log)+1 >= r.dies {
		r.log = append(r.log, operation)
		return fmt.Errorf("%w before operation %d, %s", errCrash, r.dies, operation)
	}
	r.log = append(r.log, operation)
	if !r.taken && slices.Contains([]string{"get", "format", "mount", "grow"}, operation) {
		r.t.Errorf("%q happens while the volume is not taken: %v", operation, r.log)
	}
	return nil
}

// did is note for a step of the register, which ends before or after it is durable.
func (r *register) did(step string, durably func()) error {
	if err := r.note(step); err != nil {
		return err
	}
	durably()
	return r.note("after " + step)
}

func (r *register) Take(ctx context.Context, id string, use func(context.Context) error) error {
	if r.refusing != nil {
		r.refuses = r.refusing()
	}
	if r.refuses != nil {
		return r.refuses
	}
	if err := r.did("take", func() { r.taken = true }); err != nil {
		return err
	}
	return alone(ctx, r.node.locks, id, use)
}

func (r *register) Prepare(context.Context, string, func(context.Context) error) error { return nil }

func (r *register) Fetch(ctx context.Context, _ string) error {
	if r.fetching == nil {
		return nil
	}
	return r.fetching(ctx)
}

func (r *register) Holds(ctx context.Context, id, _ string, use func(context.Context) error) error {
	return alone(ctx, r.node.locks, id, func(ctx context.Context) error {
		if !r.taken {
			return errElsewhere
		}
		return use(ctx)
	})
}

func (r *register) Give(ctx context.Context, _ string, off Off) error {
	if err := off.Unmount(ctx); err != nil || !r.taken {
		return err
	}
	left, err := off.Left(ctx)
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return fmt.Errorf("%w: mounted at %v", provision.ErrInUse, left)
	}
	return r.did("give", func() {
		r.taken = false
		if still := r.mounts(); len(still) > 0 {
			r.t.Errorf("given up while it is mounted at %v", still)
		}
	})
}

func (r *register) mounts() []string {
	record, err := r.node.pool.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.node.mounts.Mounts(record.Content.Source)
}

func (r *register) logged(want ...string) {
	r.t.Helper()
	if !slices.Equal(r.log, want) {
		r.t.Errorf("happened %v, want %v", r.log, want)
	}
	r.log = nil
}

func TestAVolumeIsTakenBeforeTheFirstLookAndGivenUpAfterTheLastUnmount(t *testing.T) {
	for name, test := range map[string]struct {
		fs     string
		staged []string
	}{
		"a filesystem":     {"ext4", []string{"take", "after take", "get", "format", "mount", "grow"}},
		"raw block volume": {"", []string{"take", "after take", "get", "format"}},
	} {
		t.Run(name, func(t *testing.T) {
			n, r := registered(t, test.fs)
			n.stage(t, id)
			r.logged(test.staged...)
			if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
				t.Fatal(err)
			}
			r.logged("unmount", "get", "table", "give", "after give")
		})
	}
}

func TestAVolumeThatAPodHasIsNotGivenUp(t *testing.T) {
	for name, fs := range map[string]string{"a filesystem": "ext4", "a raw block volume": ""} {
		t.Run(name, func(t *testing.T) {
			n, r := registered(t, fs)
			n.stage(t, id)
			n.publish(t, id, "pod1")
			n.publish(t, id, "pod2")
			for _, pod := range []string{"pod1", "pod2"} {
				if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); !errors.Is(err, provision.ErrInUse) || !r.taken {
					t.Errorf("unstaged while %s has it: %v, taken %v", pod, err, r.taken)
				}
				if err := n.Unpublish(t.Context(), id, n.path(pod)); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil || r.taken {
				t.Errorf("unstaged: %v, taken %v", err, r.taken)
			}
		})
	}
}

func TestAVolumeIsNotGivenUpIfItIsUnknownWhetherItIsMounted(t *testing.T) {
	for _, operation := range []string{"unmount", "table"} {
		n, r := registered(t, "ext4")
		n.stage(t, id)
		n.fails[operation] = errBroken
		if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); !errors.Is(err, errBroken) || !r.taken {
			t.Errorf("%s fails: %v, taken %v", operation, err, r.taken)
		}
	}
}

func TestAVolumeWhoseDeviceIsGoneIsGivenUpIfThatIsProved(t *testing.T) {
	for name, test := range map[string]struct {
		identity provision.Identity
		noRecord bool
		given    bool
	}{
		"the kernel has no device of the identity":  {identity: provision.MappedIdentity("vg0-a", "LVM-1"), given: true},
		"only opening the device would tell":        {identity: provision.ZvolIdentity("tank/a")},
		"it is not known which device it is to be":  {},
		"the provisioner has no record of a volume": {identity: provision.MappedIdentity("vg0-a", "LVM-1"), noRecord: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, r := registered(t, "ext4")
			n.stage(t, id)
			n.identity = &test.identity
			n.fails["table"] = fmt.Errorf("%w: there is no device", provision.ErrNotFound)
			if test.noRecord {
				n.fails["get"] = provision.ErrNotFound
			}
			err := n.Unstage(t.Context(), id, n.path("stage-"+id))
			if (err == nil) != test.given || r.taken == test.given {
				t.Errorf("unstaged: %v, taken %v", err, r.taken)
			}
		})
	}
}

func TestAVolumeThatCannotBeTakenIsNeitherLookedAtNorMounted(t *testing.T) {
	for name, fs := range map[string]string{"a filesystem": "ext4", "a raw block volume": ""} {
		t.Run(name, func(t *testing.T) {
			n, r := registered(t, fs)
			r.refuses = errElsewhere
			staged := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id), Block: fs == ""})
			published := n.Publish(t.Context(), n.publication(id, "pod1"))
			if !errors.Is(staged, errElsewhere) || !errors.Is(published, errElsewhere) {
				t.Errorf("staged: %v, published: %v; want %v", staged, published, errElsewhere)
			}
			r.logged()
			if still := r.mounts(); len(still) > 0 || exists(n.path("stage-"+id)) || exists(n.path("pod1")) {
				t.Errorf("mounted at %v", still)
			}
		})
	}
}

func TestAVolumeThatWasGivenUpIsNotPublished(t *testing.T) {
	n, r := registered(t, "")
	n.stage(t, id)
	if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
		t.Fatal(err)
	}
	if err := n.Publish(t.Context(), n.publication(id, "pod1")); !errors.Is(err, errElsewhere) || len(r.mounts()) > 0 {
		t.Errorf("published: %v, mounted at %v", err, r.mounts())
	}
}

// Another step of the owner, as one that takes the volume away, comes before the check or after the
// bind.
func TestAVolumeIsGivenToAPodInOneStepWithTheCheckThatItIsTaken(t *testing.T) {
	n, r := registered(t, "ext4")
	n.stage(t, id)
	looked := false
	n.seen = func(operation string) error {
		if operation == "get" {
			looked = true
			if unlock, err := n.locks.TryLock(id); err == nil {
				unlock()
				t.Error("the volume is not locked between the check and the bind")
			}
		}
		return r.note(operation)
	}
	n.publish(t, id, "pod1")
	if !looked {
		t.Error("the volume was not looked at")
	}
}

func TestAPodEndsWhileDataOfItsVolumeIsFetched(t *testing.T) {
	n, r := registered(t, "ext4")
	n.stage(t, id)
	n.publish(t, id, "pod1")
	fetched := false
	r.fetching = func(ctx context.Context) error {
		fetched = true
		if err := n.Unpublish(ctx, id, n.path("pod1")); err != nil {
			t.Errorf("unpublished meanwhile: %v", err)
		}
		return n.Unstage(ctx, id, n.path("stage-"+id))
	}
	n.stage(t, id)
	if !fetched || !r.taken {
		t.Errorf("fetched %v, taken %v", fetched, r.taken)
	}
}

func TestAVolumeWhoseDataCannotBeFetchedIsNotTaken(t *testing.T) {
	n, r := registered(t, "ext4")
	r.fetching = func(context.Context) error { return errElsewhere }
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id)}); !errors.Is(err, errElsewhere) {
		t.Errorf("staged: %v", err)
	}
	r.logged()
}

func TestNothingIsFetchedForAPathOutsideTheKubeletsDirectory(t *testing.T) {
	n, r := registered(t, "ext4")
	r.fetching = func(context.Context) error { t.Error("it is fetched"); return nil }
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: "/etc"}); err == nil {
		t.Error("it was staged")
	}
}

// Each step may be the last of the process; the kubelet repeats its call at the next one.
func TestACallGoesOnAfterACrashBetweenAnyTwoSteps(t *testing.T) {
	for name, fs := range map[string]string{"a filesystem": "ext4", "a raw block volume": ""} {
		t.Run(name, func(t *testing.T) {
			crashes := 0
			for _, call := range []string{"stage", "unstage"} {
				for dies := 1; crashed(t, fs, call, dies); dies++ {
					crashes++
				}
			}
			if want := map[string]int{"ext4": 6 + 5, "": 4 + 5}[fs]; crashes != want {
				t.Errorf("%d crashes were tried, want %d", crashes, want)
			}
		})
	}
}

// crashed dies at a step of a call, repeats the call in a new process, and says whether there is
// such a step.
func crashed(t *testing.T, fs, call string, dies int) bool {
	t.Helper()
	n, r := registered(t, fs)
	do := func() error {
		if call == "stage" {
			return n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id), Block: fs == ""})
		}
		return n.Unstage(t.Context(), id, n.path("stage-"+id))
	}
	if call == "unstage" {
		n.stage(t, id)
	}
	r.log, r.dies = nil, dies
	err := do()
	r.log, r.dies = nil, 0
	if err == nil {
		return false
	}
	if mounted := len(r.mounts()) > 0; !errors.Is(err, errCrash) || mounted && !r.taken {
		t.Errorf("%s: %v, mounted %v and taken %v", call, err, mounted, r.taken)
	}
	n.restart()
	if err := do(); err != nil || r.taken != (call == "stage") || (len(r.mounts()) > 0) != (call == "stage" && fs != "") {
		t.Errorf("%s after a crash at step %d: %v, taken %v, mounted at %v", call, dies, err, r.taken, r.mounts())
	}
	return true
}

func TestAVolumeWithOneCopyIsNotLookedAtToTakeItOff(t *testing.T) {
	n, r := registered(t, "ext4")
	n.owner, r.taken = nil, true
	n.restart()
	n.stage(t, id)
	r.logged("get", "format", "mount", "grow")
	n.publish(t, id, "pod1")
	r.logged("get")
	if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
		t.Error(err)
	}
	r.logged("unmount")
}
