package machinehealthcheck

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestRequestKind(t *testing.T) {
	tcs := map[string]struct {
		kind      string
		want      string
		wantError bool
	}{
		"what precedes the suffix":     {"RebootTemplate", "Reboot", false},
		"only the last suffix goes":    {"TemplateTemplate", "Template", false},
		"no template":                  {"Reboot", "", true},
		"nothing but the suffix":       {"Template", "", true},
		"the suffix with a small t":    {"Reboottemplate", "", true},
		"a kind that was not given":    {"", "", true},
		"the suffix must be at an end": {"RebootTemplates", "", true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got, err := requestKind(&corev1.ObjectReference{APIVersion: "example.com/v1", Kind: tc.kind})
			if got.Kind != tc.want || (err != nil) != tc.wantError {
				t.Errorf("got %s, %v; want %q, an error: %t", got, err, tc.want, tc.wantError)
			}
			if err == nil && got.GroupVersion().String() != "example.com/v1" {
				t.Errorf("got the group and version %s", got.GroupVersion())
			}
		})
	}
}

func TestRequestFrom(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Reboot"}
	machine := builder.Machine(builder.Stored(now))
	owner := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": machine.Name, "uid": string(machine.UID),
	}
	template := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "RebootTemplate",
			"metadata": map[string]any{"name": "reboot", "labels": map[string]any{"of": "the-template"}},
			"spec":     spec,
		}}
	}
	cloned := map[string]any{clonedFromName: "reboot", clonedFromGroupKind: "RebootTemplate.example.com"}
	tcs := map[string]struct {
		spec map[string]any
		want map[string]any
	}{
		"the spec is carried over": {
			spec: map[string]any{"template": map[string]any{"spec": map[string]any{"retries": int64(2)}}},
			want: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Reboot",
				"metadata": map[string]any{
					"name": machine.Name, "namespace": machine.Namespace, "annotations": cloned, "ownerReferences": []any{owner},
				},
				"spec": map[string]any{"retries": int64(2)},
			},
		},
		"of the metadata only labels and annotations are, and no status": {
			spec: map[string]any{"template": map[string]any{
				"metadata": map[string]any{
					"name": "x", "uid": "y", "resourceVersion": "1", "finalizers": []any{"z"},
					"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"},
				},
				"status": map[string]any{"done": true},
			}},
			want: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Reboot",
				"metadata": map[string]any{
					"name": machine.Name, "namespace": machine.Namespace, "ownerReferences": []any{owner},
					"labels": map[string]any{"a": "b"},
					"annotations": map[string]any{
						"c": "d", clonedFromName: "reboot", clonedFromGroupKind: "RebootTemplate.example.com",
					},
				},
			},
		},
		"a template without an object is an error": {spec: map[string]any{}},
		"so is one of another shape":               {spec: map[string]any{"template": "text"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			from := template(tc.spec)
			before := from.DeepCopy()
			got, err := requestFrom(from, kind, machine)
			if tc.want == nil {
				if err == nil || !strings.Contains(err.Error(), "spec.template") {
					t.Errorf("got %v, want an error that names spec.template", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Object); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, from); diff != "" {
				t.Errorf("the template has changed: %s", diff)
			}
		})
	}
}

func TestFixFor(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Reboot"}
	resource := schema.GroupResource{Group: "example.com", Resource: "reboots"}
	tcs := map[string]struct {
		err  error
		want string
	}{
		"no CRD":       {&meta.NoKindMatchError{GroupKind: kind.GroupKind()}, "install the CustomResourceDefinition of Reboot in example.com/v1"},
		"no right":     {apierrors.NewForbidden(resource, "x", errors.New("no")), "grant the operator's service account get for Reboot.example.com"},
		"no object":    {apierrors.NewNotFound(resource, "x"), "create the Reboot, or correct spec.remediationTemplate"},
		"just trouble": {errors.New("connection refused"), "it will be retried"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := fixFor(tc.err, kind, "get"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShowRequests(t *testing.T) {
	const condition = machinev1beta1.ExternalRemediationRequestAvailable
	tcs := map[string]struct {
		targets  []*target
		failures []error
		want     *machinev1beta1.Condition
	}{
		"nothing requested, nothing reported": {targets: []*target{named("m", 0)}},
		"what is about to be deleted does not count": {
			targets: []*target{named("m", 0, asked, wellAgain)},
		},
		"a request": {
			targets: []*target{named("m", 0, asked)},
			want:    &machinev1beta1.Condition{Type: condition, Status: corev1.ConditionTrue},
		},
		"a failure is worse than a request is good": {
			targets:  []*target{named("m", 0, asked), named("n", 0)},
			failures: []error{errors.New("making it: no")},
			want: &machinev1beta1.Condition{
				Type: condition, Status: corev1.ConditionFalse, Severity: "Error", Reason: "ExternalRemediationRequestCreationFailed",
				Message: "making it: no",
			},
		},
		"of many failures the first is reported": {
			targets:  []*target{named("m", 0), named("n", 0)},
			failures: []error{errors.New("first"), errors.New("second"), errors.New("third")},
			want: &machinev1beta1.Condition{
				Type: condition, Status: corev1.ConditionFalse, Severity: "Error", Reason: "ExternalRemediationRequestCreationFailed",
				Message: "first (and 2 more)",
			},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := &scope{check: builder.MachineHealthCheck(), now: now, targets: tc.targets}
			s.setCondition(machinev1beta1.Condition{Type: condition, Status: corev1.ConditionFalse, Message: "what was before"})
			setRequestsCondition(s, tc.failures)
			if tc.want != nil {
				tc.want.LastTransitionTime = metav1.NewTime(now)
			}
			if diff := cmp.Diff(tc.want, machineapi.FindCondition(s.check.Status.Conditions, condition)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
