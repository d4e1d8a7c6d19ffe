package v1alpha1

import "slices"

// InlineVolumes names the namespaces whose pods may have inline volumes of a class. Quotas of
// claims do not count such volumes.
type InlineVolumes struct {
	// namespaces whose pods may have inline volumes; * stands for all.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|[*])$`
	Namespaces []string `json:"namespaces"`
}

// EveryNamespace stands for all namespaces in InlineVolumes.
const EveryNamespace = "*"

// AllowsInline says whether the pods of a namespace may have inline volumes of the class.
func (s *PoolClassSpec) AllowsInline(namespace string) bool {
	return s.InlineVolumes != nil &&
		(slices.Contains(s.InlineVolumes.Namespaces, namespace) || slices.Contains(s.InlineVolumes.Namespaces, EveryNamespace))
}
