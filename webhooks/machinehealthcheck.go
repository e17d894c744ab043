package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The annotations by which a MachineHealthCheck says what its spec has no field for.
const (
	exemptAnnotation   = "machine-iac.io/exempt-starting-machines"
	inFlightAnnotation = "machine-iac.io/max-remediations-in-flight"
)

// healthCheckValidator validates MachineHealthChecks. It takes them as they are written: the API's type has no place for a
// duration that cannot be read, and one such object, once stored, keeps clients from reading any.
type healthCheckValidator struct{}

// ValidateCreate implements admission.Validator.
func (*healthCheckValidator) ValidateCreate(_ context.Context, check *unstructured.Unstructured) (admission.Warnings, error) {
	found := validateHealthCheck(check)
	return found.invalid(healthCheckKind, check.GetName())
}

// ValidateUpdate implements admission.Validator.
func (*healthCheckValidator) ValidateUpdate(_ context.Context, before, check *unstructured.Unstructured) (admission.Warnings, error) {
	found := changedHealthCheck(before, check)
	return found.invalid(healthCheckKind, check.GetName())
}

// ValidateDelete implements admission.Validator. Anything may be deleted.
func (*healthCheckValidator) ValidateDelete(context.Context, *unstructured.Unstructured) (admission.Warnings, error) {
	return nil, nil
}

// changedHealthCheck checks an update: what was wrong before is no reason to refuse it.
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

// healthCheckSpec is the spec of a MachineHealthCheck with nothing read that may be unreadable.
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
				`; write it as 10m, or as "0" so that Machines may start for ever`))
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
			found.refuse(field.Required(at.Child("status"), `write it as "False", "Unknown" or "True"`))
		default:
			found.warn(field.Invalid(at.Child("status"), shorten(condition.Status),
				`no condition ever has this status; write it as "False", "Unknown" or "True"`))
		}
		if err := readDuration(condition.Timeout); err != nil {
			found.refuse(field.Invalid(at.Child("timeout"), shorten(condition.Timeout), err.Error()+"; write it as 300s"))
		}
	}
}

// readDuration returns why a text is no duration of use.
func readDuration(text string) error {
	duration, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("it is no duration from 0 to 292 years")
	case duration < 0:
		return errors.New("it is negative")
	default:
		return nil
	}
}

var maxUnhealthyPattern = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]+)$`)

// validateMaxUnhealthy returns what is wrong with maxUnhealthy, "" for nothing.
func validateMaxUnhealthy(raw json.RawMessage) string {
	const fix = "write a number such as 3, or a percentage from 0% to 100%"
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	text := string(raw)
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw)
	}
	if !maxUnhealthyPattern.MatchString(text) {
		return "it is neither a number from 0 on nor a percentage; " + fix
	}
	if _, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 32); err != nil {
		return "it is larger than any number of Machines; " + fix
	}
	return ""
}

func validateAnnotations(annotations map[string]string, found *admissionResult) {
	path := field.NewPath("metadata", "annotations")
	if value, given := annotations[exemptAnnotation]; given && value != "true" && value != "false" {
		found.refuse(field.NotSupported(path.Key(exemptAnnotation), shorten(value), []string{"true", "false"}))
	}
	if value, given := annotations[inFlightAnnotation]; given && !limits(value) {
		found.refuse(field.Invalid(path.Key(inFlightAnnotation), shorten(value),
			"it is neither a number from 1 on nor a percentage from 1% to 100%; write it as 3 or as 40%"))
	}
}

// limits reports whether a text is a limit of remediations: a number or a percentage, at least 1.
func limits(text string) bool {
	digits, percent := strings.CutSuffix(text, "%")
	number, err := strconv.ParseInt(digits, 10, 32)
	return err == nil && number >= 1 && (!percent || number <= 100)
}
