package volumes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase/volumes"
)

// choice is a copy of an object on node m, for a claim for which a scheduler has chosen node n.
type choice struct {
	claim   *corev1.PersistentVolumeClaim
	class   *storagev1.StorageClass
	request volumes.Request
}

func choose(change func(c *choice)) *choice {
	c := &choice{&corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{}, copyOf(v1alpha1.VolumeSource{Volume: sourceID}, "n")}
	c.class.Name = "local"
	c.claim.Namespace, c.claim.Name, c.claim.UID = "shop", "data", types.UID(id[len("pvc-"):])
	c.claim.Annotations = map[string]string{volumes.SelectedNode: "n"}
	c.claim.Spec.StorageClassName = &c.class.Name
	change(c)
	return c
}

// objects returns the existing objects of the choice, and the source.
func (c *choice) objects() []client.Object {
	objects := []client.Object{source()}
	if c.claim != nil {
		objects = append(objects, c.claim)
	}
	if c.class != nil {
		objects = append(objects, c.class)
	}
	return objects
}

// in is a term of a class's allowedTopologies: nodes by a key.
func in(key string, nodes ...string) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: nodes}}}
}

func TestACopyFollowsItsSourceWhereTheNodeIsButAChoice(t *testing.T) {
	const key = v1alpha1.TopologyKey
	allow := func(terms ...corev1.TopologySelectorTerm) func(c *choice) {
		return func(c *choice) { c.class.AllowedTopologies = terms }
	}
	for name, test := range map[string]struct {
		change  func(c *choice)
		follows bool
	}{
		"a scheduler chose another node":                                                     {func(*choice) {}, true},
		"a scheduler chose another node, and the class allows both nodes":                    {allow(in(key, "n", "m")), true},
		"a scheduler chose another node, and one term of the class allows the source's node": {allow(in(key, "n"), in(key, "m")), true},
		"a scheduler chose another node, and the class forbids the source's node":            {allow(in(key, "n")), false},
		"a scheduler chose another node, and the class names another topology":               {allow(in("zone", "m")), false},
		"no scheduler has chosen a node":                                                     {func(c *choice) { c.claim.Annotations = nil }, false},
		"a third node was chosen meanwhile":                                                  {func(c *choice) { c.claim.Annotations[volumes.SelectedNode] = "far" }, false},
		"the request allows more than one node":                                              {func(c *choice) { c.request.Topology.Allowed = []string{"n", "far"} }, false},
		"the claim is not known":                                                             {func(c *choice) { c.request.Claim = nil }, false},
		"the claim is gone":                                                                  {func(c *choice) { c.claim = nil }, false},
		"a new claim has the name of the old claim":                                          {func(c *choice) { c.claim.UID = "another" }, false},
		"the claim has no class":                                                             {func(c *choice) { c.claim.Spec.StorageClassName = nil }, false},
		"the class is gone":                                                                  {func(c *choice) { c.class = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := choose(test.change)
			play(t, func(t *testing.T, s *stage) {
				_, err := s.Create(within(t), c.request)
				if !test.follows {
					expect(t, err, volumes.ErrUnplaceable)
					s.wroteOnly()
					return
				}
				expect(t, err, nil)
				s.on("m")
				_, err = s.Create(within(t), c.request) // the copy stays there
				expect(t, err, nil)
				s.wroteOnly("create")
			}, c.objects()...)
		})
	}
}

func TestAVolumeThatIsNoCopyGoesWhereItsClaimIs(t *testing.T) {
	c := choose(func(c *choice) { c.request = request("n") })
	play(t, func(t *testing.T, s *stage) {
		_, err := s.Create(within(t), c.request)
		expect(t, err, nil)
		s.on("n")
	}, append(c.objects(), existing(wanted("m"), carved("m")))...)
}

func TestACopyFollowsTheAPIServerAndNotAStaleCache(t *testing.T) {
	for name, write := range map[string]func(c *choice) (now, before client.Object){
		"the cache shows an old claim": func(c *choice) (now, before client.Object) {
			stale := c.claim.DeepCopy()
			stale.Annotations = nil
			return c.claim, stale
		},
		"the cache shows an old class": func(c *choice) (now, before client.Object) {
			stale := c.class.DeepCopy()
			stale.AllowedTopologies = []corev1.TopologySelectorTerm{in(v1alpha1.TopologyKey, "n")}
			return c.class, stale
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := choose(func(*choice) {})
			now, before := write(c)
			objects := []client.Object{source(), before}
			for _, o := range c.objects()[1:] {
				if o != now {
					objects = append(objects, o)
				}
			}
			play(t, func(t *testing.T, s *stage) {
				s.Hold(&corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{})
				s.must(s.Server.Live().Get(t.Context(), client.ObjectKeyFromObject(before), before))
				now.SetResourceVersion(before.GetResourceVersion())
				s.must(s.Others().Update(t.Context(), now))
				_, err := s.Create(within(t), c.request)
				expect(t, err, nil)
				s.on("m")
			}, objects...)
		})
	}
}

func TestACopyFollowsNothingThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		unread  runtime.Object
		allowed string
		class   error
		there   bool
	}{
		"the claim cannot be read": {&corev1.PersistentVolumeClaim{}, "n", errBroken, false},
		"the class cannot be read": {&storagev1.StorageClass{}, "n", errBroken, false},
		"the claim cannot be read, and the request allows the source's node": {&corev1.PersistentVolumeClaim{}, "m", nil, false},
		"the claim cannot be read, and the copy exists":                      {&corev1.PersistentVolumeClaim{}, "n", errBroken, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := choose(func(c *choice) { c.request.Topology.Allowed = []string{test.allowed} })
			objects := c.objects()
			if test.there {
				objects = append(objects, existing(wanted("m"), carved("m"), func(v *v1alpha1.Volume) { v.Spec.Source = c.request.Source }))
			}
			play(t, func(t *testing.T, s *stage) {
				s.unread = test.unread
				_, err := s.Create(within(t), c.request)
				expect(t, err, test.class)
				if test.there {
					s.on("m")
				}
			}, objects...)
		})
	}
}
