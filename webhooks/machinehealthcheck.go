package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// healthCheckValidator validates MachineHealthChecks as raw objects. The API's type cannot
// represent an unreadable duration, and one such object, once stored, breaks all clients that list
// the kind.
type healthCheckValidator struct{}

// ValidateCreate implements admission.Validator.
func (*healthCheckValidator) ValidateCreate(_ context.Context,
	check *unstructured.Unstructured) (admission.Warnings, error) {
	found := validateHealthCheck(check)
	return found.invalid(healthCheckKind, check.GetName())
}

// ValidateUpdate implements admission.Validator.
func (*healthCheckValidator) ValidateUpdate(_ context.Context, before,
	check *unstructured.Unstructured) (admission.Warnings, error) {
	found := changedHealthCheck(before, check)
	return found.invalid(healthCheckKind, check.GetName())
}

// ValidateDelete implements admission.Validator. Deletions are always allowed.
func (*healthCheckValidator) ValidateDelete(context.Context, *unstructured.Unstructured) (admission.Warnings, error) {
	return nil, nil
}

// changedHealthCheck checks an update. Existing faults are no reason to reject it.
func changedHealthCheck(before, check *unstructured.Unstructured) admissionResult {
	if deleting(check) && reflect.DeepEqual(before.Object["spec"], check.Object["spec"]) {
		return admissionResult{}
	}
	found := validateHealthCheck(check)
	if len(found.errs) > 0 {
		found.tolerate(validateHealthCheck(before).errs)
	}
	return found
}

// healthCheckSpec is the spec of a MachineHealthCheck with all fields that may be unreadable left
// raw.
type healthCheckSpec struct {
	Selector            metav1.LabelSelector `json:"selector"`
	UnhealthyConditions []struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Timeout string `json:"timeout"`
	} `json:"unhealthyConditions"`
	MaxUnhealthy       json.RawMessage `json:"maxUnhealthy"`
	NodeStartupTimeout *string         `json:"nodeStartupTimeout"`
}

// validateHealthCheck checks a MachineHealthCheck.
func validateHealthCheck(check *unstructured.Unstructured) admissionResult {
	var found admissionResult
	path := field.NewPath("spec")
	spec, err := readHealthCheck(check)
	if err != nil {
		found.refuse(field.Invalid(path, field.OmitValueType{}, err.Error()))
		return found
	}
	if _, err := metav1.LabelSelectorAsSelector(&spec.Selector); err != nil {
		found.refuse(field.Invalid(path.Child("selector"), spec.Selector, err.Error()))
	}
	validateConditions(spec, path.Child("unhealthyConditions"), &found)
	if problem := validateMaxUnhealthy(spec.MaxUnhealthy); problem != "" {
		found.refuse(field.Invalid(path.Child("maxUnhealthy"), badValue(shorten(string(spec.MaxUnhealthy))), problem))
	}
	if spec.NodeStartupTimeout != nil {
		if err := readDuration(*spec.NodeStartupTimeout); err != nil {
			found.refuse(field.Invalid(path.Child("nodeStartupTimeout"), shorten(*spec.NodeStartupTimeout), err.Error()+
				`; use a duration such as 10m, or "0" for no timeout`))
		}
	}
	validateAnnotations(check.GetAnnotations(), &found)
	return found
}

func readHealthCheck(check *unstructured.Unstructured) (*healthCheckSpec, error) {
	raw, err := json.Marshal(check.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	spec := &healthCheckSpec{}
	if err := json.Unmarshal(raw, spec); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return spec, nil
}

func validateConditions(spec *healthCheckSpec, path *field.Path, found *admissionResult) {
	if len(spec.UnhealthyConditions) == 0 {
		found.refuse(field.Required(path, "name at least one condition of Nodes, with type, status and timeout"))
	}
	for i, condition := range spec.UnhealthyConditions {
		at := path.Index(i)
		if condition.Type == "" {
			found.refuse(field.Required(at.Child("type"), "name a condition of Nodes, such as Ready"))
		}
		switch corev1.ConditionStatus(condition.Status) {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		case "":
			found.refuse(field.Required(at.Child("status"), `use "False", "Unknown" or "True"`))
		default:
			found.warn(field.Invalid(at.Child("status"), shorten(condition.Status),
				`no condition has this status; use "False", "Unknown" or "True"`))
		}
		if err := readDuration(condition.Timeout); err != nil {
			found.refuse(field.Invalid(at.Child("timeout"), shorten(condition.Timeout),
				err.Error()+"; use a duration such as 300s"))
		}
	}
}

// readDuration returns why a text is not a usable duration.
func readDuration(text string) error {
	duration, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("must be a duration from 0 to 292 years")
	case duration < 0:
		return errors.New("must not be negative")
	default:
		return nil
	}
}

// validateMaxUnhealthy returns what is wrong with maxUnhealthy, or "".
func validateMaxUnhealthy(raw json.RawMessage) string {
	const fix = "use a number such as 3, or a percentage from 0% to 100%"
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	text := string(raw)
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw)
	}
	quantity, err := machineapi.ParseQuantity(text)
	switch {
	case quantity.Number > math.MaxInt32 && !quantity.Percent:
		return "must not exceed the largest number of Machines; " + fix
	case err != nil || quantity.Number < 0 || quantity.Percent && quantity.Number > 100:
		return "must be a number from 0 or a percentage; " + fix
	}
	return ""
}

func validateAnnotations(annotations map[string]string, found *admissionResult) {
	path := field.NewPath("metadata", "annotations")
	if _, ok := machineapi.ExemptsStarting(annotations); !ok {
		const key = machineapi.ExemptAnnotation
		found.refuse(field.NotSupported(path.Key(key), shorten(annotations[key]), []string{"true", "false"}))
	}
	if limit, ok := machineapi.RemediationLimit(annotations, 0); !ok || limit > math.MaxInt32 && limit != machineapi.NoLimit {
		const key = machineapi.InFlightAnnotation
		found.refuse(field.Invalid(path.Key(key), shorten(annotations[key]),
			"must be a number from 1 or a percentage from 1% to 100%, such as 3 or 40%"))
	}
}
