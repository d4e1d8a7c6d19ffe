package versions

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/yaml"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// promised are the versions of Kubernetes that docs/versions.md lists.
var promised = []*version.Version{version.MajorMinor(1, 34), version.MajorMinor(1, 35), version.MajorMinor(1, 36), version.MajorMinor(1, 37)}

// read decodes the objects in the chart's files of a pattern.
func read[T any](t *testing.T, pattern string) []T {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../../charts/berth", pattern))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		// The policy is the first object of its file, and its binding has no rules.
		var object T
		if err := yaml.NewYAMLOrJSONDecoder(f, 4096).Decode(&object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, object)
	}
	if len(all) == 0 {
		t.Fatalf("the chart has no files %s", pattern)
	}
	return all
}

func TestEveryRuleOfADefinitionCompilesOnEachKubernetes(t *testing.T) {
	for _, crd := range read[apiextensionsv1.CustomResourceDefinition](t, "crd-bases/*.yaml") {
		for _, v := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := schema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			for _, kubernetes := range promised {
				w := walk{t: t, at: fmt.Sprintf("Kubernetes %s, %s", kubernetes, crd.Name), env: environment.MustBaseEnvSet(kubernetes)}
				if n := w.compile(structural, model.SchemaDeclType(structural, true)); n == 0 {
					t.Errorf("%s has no rules", crd.Name)
				}
			}
		}
	}
}

// walk compiles the rules of a schema and of all below it.
type walk struct {
	t   *testing.T
	at  string
	env *environment.EnvSet
}

// compile returns how many rules it compiled.
func (w walk) compile(s *schema.Structural, declared *apiservercel.DeclType) int {
	w.t.Helper()
	results, err := schemacel.Compile(s, declared, celconfig.PerCallLimit, w.env, schemacel.NewExpressionsEnvLoader())
	if err != nil {
		w.t.Errorf("%s: %v", w.at, err)
	}
	for i, r := range results {
		if r.Error != nil || r.MessageExpressionError != nil {
			w.t.Errorf("%s: %s: %v, %v", w.at, s.XValidations[i].Rule, r.Error, r.MessageExpressionError)
		}
	}
	n := len(results)
	for name, property := range s.Properties {
		below := w
		below.at += "." + name
		n += below.compile(&property, model.SchemaDeclType(&property, false))
	}
	if s.Items != nil {
		n += w.compile(s.Items, model.SchemaDeclType(s.Items, false))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		n += w.compile(s.AdditionalProperties.Structural, model.SchemaDeclType(s.AdditionalProperties.Structural, false))
	}
	return n
}

func TestEveryRuleOfAPolicyCompilesOnEachKubernetes(t *testing.T) {
	for _, policy := range read[admissionv1.ValidatingAdmissionPolicy](t, "admission/*.yaml") {
		for _, kubernetes := range promised {
			for _, err := range compile(t, &policy, kubernetes) {
				t.Errorf("Kubernetes %s, policy %s: %s", kubernetes, policy.Name, err)
			}
		}
	}
}

// compile returns what an API server of a version has against a policy.
func compile(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, kubernetes *version.Version) (problems []string) {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(kubernetes))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	add := func(expression string, r plugincel.CompilationResult) {
		if r.Error != nil {
			problems = append(problems, expression+": "+r.Error.Error())
		}
	}
	for _, v := range policy.Spec.Variables {
		accessor := &validating.Variable{Name: v.Name, Expression: v.Expression}
		add(v.Expression, compiler.CompileAndStoreVariable(accessor, declared, environment.NewExpressions))
	}
	for i := range policy.Spec.MatchConditions {
		c := (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i])
		add(c.Expression, compiler.CompileCELExpression(c, declared, environment.NewExpressions))
	}
	for _, v := range policy.Spec.Validations {
		add(v.Expression, compiler.CompileCELExpression(&validating.ValidationCondition{Expression: v.Expression}, declared, environment.NewExpressions))
		if v.MessageExpression != "" {
			message := &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
			add(v.MessageExpression, compiler.CompileCELExpression(message, declared, environment.NewExpressions))
		}
	}
	return problems
}

// Else the tests above would hold whatever the version.
func TestAFunctionIsRefusedBeforeItsVersion(t *testing.T) {
	policy := &admissionv1.ValidatingAdmissionPolicy{Spec: admissionv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionv1.Validation{{Expression: "lists.range(3).size() == 3"}},
	}}
	if got := compile(t, policy, version.MajorMinor(1, 33)); len(got) != 1 {
		t.Errorf("Kubernetes 1.33 has no lists.range, and said %q", got)
	}
	if got := compile(t, policy, version.MajorMinor(1, 34)); len(got) != 0 {
		t.Errorf("Kubernetes 1.34 has lists.range, and said %q", got)
	}
}
