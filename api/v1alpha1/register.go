package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of Berth's objects.
var GroupVersion = schema.GroupVersion{Group: "berth.dev", Version: "v1alpha1"}

// SchemeGroupVersion is GroupVersion under the name that generated clients use.
var SchemeGroupVersion = GroupVersion

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers Berth's objects.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&LUN{}, &LUNList{},
		&PoolClass{}, &PoolClassList{},
		&Snapshot{}, &SnapshotList{},
		&StorageNode{}, &StorageNodeList{},
		&Volume{}, &VolumeList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource qualifies a resource name with Berth's group.
func Resource(name string) schema.GroupResource {
	return GroupVersion.WithResource(name).GroupResource()
}
