package rules

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/internal/apitest"
)

// schemas are the objects' schemas by plural name.
func schemas(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	found := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, object := range apitest.Definitions(t) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
			t.Fatal(err)
		}
		found[crd.Spec.Names.Plural] = *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return found
}

// walk visits a schema and all that is below it. A list's items have the path
// of the list and "[]".
func walk(path string, s apiextensionsv1.JSONSchemaProps, visit func(path string, s apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		walk(strings.TrimPrefix(path+"."+name, "."), s.Properties[name], visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
}

// refusals returns every refusal that some case of this package expects.
func refusals() map[string]bool {
	seen := refusedClasses()
	maps.Copy(seen, refusedLUNs())
	for _, cases := range []map[string]statusCase{entryCases, specCases, agentCases} {
		for _, tc := range cases {
			seen[tc.refusal] = true
		}
	}
	for _, tc := range ownershipCases {
		seen[tc.refusal] = true
	}
	for _, tc := range diskCases {
		seen[tc.refusal] = true
	}
	for _, tc := range lunCases {
		seen[tc.refusal] = true
	}
	for _, tc := range createCases {
		seen[tc.refusal] = true
	}
	for _, tc := range writersCases {
		seen[tc.refusal] = true
	}
	for _, refusal := range oversightRefusals {
		seen[refusal] = true
	}
	for _, tc := range datasetCases {
		seen[tc.refusal] = true
	}
	for _, tc := range reportCases {
		seen[tc.refusal] = true
	}
	for _, tc := range createDenials {
		seen[tc.refusal] = true
	}
	for _, tc := range snapshotChanges {
		seen[tc.refusal] = true
	}
	for _, tc := range snapshotSpecs {
		seen[tc.refusal] = true
	}
	for _, tc := range snapshotCases {
		seen[tc.refusal] = true
	}
	for _, tc := range subvolumeCases {
		seen[tc.refusal] = true
	}
	for _, tc := range orderCases {
		seen[tc.agent], seen[tc.controller] = true, true
	}
	for _, tc := range forgetCases {
		seen[tc.refusal] = true
	}
	for _, tc := range strayRequests {
		seen[tc.refusal] = true
	}
	for _, tc := range schedulerCases {
		seen[tc.refusal], seen[tc.deletion] = true, true
	}
	for _, tc := range schedulerCreations {
		seen[tc.refusal] = true
	}
	seen[otherDriver] = true                          // see TestAnAgentPublishesCapacityOfBerthsClassesAlone
	seen[wishStays] = true                            // see TestANodeLeavesTheWishesOnlyAfterItsReplicaIsGone
	seen[otherLease], seen[unboundGuard] = true, true // see TestAGuardWritesTheLeaseOfItsOwnNodeAlone
	seen[otherSigner], seen[longRequest] = true, true // see TestAgentsAndGuardsAskForNoOtherSignerAndForNothingLong
	return seen
}

// refusedClasses returns the refusals of PoolClasses.
func refusedClasses() map[string]bool {
	seen := map[string]bool{}
	for _, tc := range classCases {
		seen[tc.refusal] = true
	}
	for _, tc := range classChanges {
		seen[tc.refusal] = true
	}
	for _, tc := range nodeGoneCases {
		seen[tc.refusal] = true
	}
	for _, tc := range trimCases {
		seen[tc.refusal] = true
	}
	for _, tc := range zpoolCases {
		seen[tc.refusal] = true
	}
	for _, tc := range zpoolCreationCases {
		seen[tc.refusal] = true
	}
	for _, tc := range zpoolChanges {
		seen[tc.refusal] = true
	}
	for _, tc := range creationCases {
		seen[tc.refusal] = true
	}
	for _, tc := range btrfsClassCases {
		seen[tc.refusal] = true
	}
	return seen
}

func TestEveryRuleRefusesSomeRequest(t *testing.T) {
	tried := refusals()
	for kind, schema := range schemas(t) {
		walk("", schema, func(path string, s apiextensionsv1.JSONSchemaProps) {
			for _, rule := range s.XValidations {
				if !tried[rule.Message] {
					t.Errorf("%s %s: no case is refused with %q", kind, path, rule.Message)
				}
			}
		})
	}
}

// A list or string without a bound makes rules on it too expensive for the API
// server, and lets one object fill its storage.
func TestEveryListAndStringIsBounded(t *testing.T) {
	for kind, schema := range schemas(t) {
		walk("", schema, func(path string, s apiextensionsv1.JSONSchemaProps) {
			switch {
			case slices.Contains([]string{"apiVersion", "kind", "metadata"}, path):
			case strings.Contains(path, "nodeSelector"): // the type is Kubernetes' own, and no rule reads it
			case s.Type == "array" && s.MaxItems == nil:
				t.Errorf("%s %s: a list without maxItems", kind, path)
			case (s.Type == "string" || s.XIntOrString) && s.MaxLength == nil && s.Enum == nil && s.Format == "":
				t.Errorf("%s %s: a string without maxLength", kind, path)
			case s.AdditionalProperties != nil && s.MaxProperties == nil:
				t.Errorf("%s %s: a map without maxProperties", kind, path)
			}
		})
	}
}

func TestEveryPolicyRefusesSomeRequestByEachOfItsRules(t *testing.T) {
	tried := refusals()
	bound := map[string]bool{}
	var policies []*admissionv1.ValidatingAdmissionPolicy
	for _, object := range apitest.Policies(t) {
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			bound[object.GetName()] = true
			continue
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy); err != nil {
			t.Fatal(err)
		}
		policies = append(policies, policy)
	}
	for _, policy := range policies {
		if !bound[policy.Name] {
			t.Errorf("policy %s has no binding, so it does nothing", policy.Name)
		}
		for _, rule := range policy.Spec.Validations {
			if text := denied(policy.Name, said(rule)); !tried[text] {
				t.Errorf("no case is refused with %q", text)
			}
		}
	}
}

// said is the message of a rule to the agent of n1.
func said(rule admissionv1.Validation) string {
	if rule.MessageExpression == "" {
		return rule.Message
	}
	return strings.NewReplacer("' + variables.me + '", "n1", "' + variables.me", "n1", "'", "").Replace(rule.MessageExpression)
}
