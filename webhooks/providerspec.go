package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// valuePath is the path of a Machine's providerSpec.
const valuePath = "spec.providerSpec.value"

// shortPath is valuePath in the Machine API's traditional messages, which are the same for Machines
// and MachineSets.
var shortPath = field.NewPath("providerSpec", "value")

// rules validate providerSpecs.
type rules struct {
	catalog   *module.Catalog
	clusterID string
	cluster   module.ClusterValues
	// reader reads the facts about the cluster; may be nil.
	reader module.ClusterReader
	known  *module.Cluster
	// servedElsewhere allows providerSpecs that no module serves.
	servedElsewhere bool
	// lacking names the providers that a module needs and the manager lacks; may be nil.
	lacking func(*module.Module) []string
	// disabledGates are OpenShift's feature gates whose fields new objects must not set.
	disabledGates []string
	// held caches validations that have passed.
	held *render.Held
}

// now returns the rules with the current facts about the cluster.
func (r rules) now(ctx context.Context) (rules, error) {
	if r.reader == nil {
		return r, nil
	}
	var err error
	r.known, err = r.reader.Cluster(ctx)
	return r, err
}

// completed returns a new Machine's providerSpec with the defaults of its module. A providerSpec
// that no module serves is rejected later.
func (r rules) completed(machine *machinev1beta1.Machine) *runtime.RawExtension {
	served, err := render.ModuleFor(r.catalog, machine, r.cluster[module.ValuePlatform])
	if err != nil {
		return machine.Spec.ProviderSpec.Value
	}
	complete, _ := render.Complete(machine, served, r.cluster)
	return complete.Spec.ProviderSpec.Value
}

// providerSpec checks a Machine's providerSpec. under prefixes the paths: "spec.template" if the
// Machine is a template.
func (r rules) providerSpec(machine *machinev1beta1.Machine, under string) admissionResult {
	var found admissionResult
	if missing := requireValue(machine.Spec.ProviderSpec.Value); missing != nil {
		found.refuse(missing)
		return found
	}
	served, err := render.ModuleFor(r.catalog, machine, r.cluster[module.ValuePlatform])
	if err != nil {
		found.errs = fieldErrors("", err)
		if r.servedElsewhere {
			found.allow("accepted because another controller serves Machines")
		}
		return found
	}
	input := render.Input{Machine: machine, ClusterID: r.clusterOf(machine), Module: served, Cluster: r.known,
		Under: under, Held: r.held}
	warnings, err := render.Check(input)
	for _, warning := range warnings {
		found.warnings = append(found.warnings, warningText(under, warning))
	}
	if err != nil {
		found.errs = fieldErrors(under, err)
		return found
	}
	found.errs = r.gated(machine, served)
	found.secrets = secretsOf(input)
	if r.lacking != nil {
		for _, missing := range r.lacking(served) {
			found.warnings = append(found.warnings, fmt.Sprintf("module %s needs the provider %s, which the manager's "+
				"provider mirror lacks: Machines wait until it is added, as docs/modules.md#get-the-provider shows",
				served.Name(), missing))
		}
	}
	return found
}

// gated returns the errors for fields whose feature gate is disabled, in machine-api-operator's
// words.
func (r rules) gated(machine *machinev1beta1.Machine, served *module.Module) (errs field.ErrorList) {
	gates := served.Spec().FeatureGates
	for _, path := range slices.Sorted(maps.Keys(gates)) {
		value := render.Field(machine, served, path)
		if value == nil || !slices.Contains(r.disabledGates, gates[path]) {
			continue
		}
		_, name := module.SplitLast(path)
		errs = append(errs, field.Invalid(field.NewPath("providerSpec", strings.Split(path, ".")...), value,
			fmt.Sprintf("feature gate %s must be enabled to use %s", gates[path], name)))
	}
	return errs
}

// clusterOf returns the Machine's cluster, or the one that it will belong to.
func (r rules) clusterOf(machine *machinev1beta1.Machine) string {
	if label, given := machine.Labels[machinev1beta1.MachineClusterIDLabel]; given {
		return label
	}
	return r.clusterID
}

// unlabelled returns the error for a Machine that will lack its cluster's name, or nil.
func (r rules) unlabelled(machine *machinev1beta1.Machine, under string) *field.Error {
	if r.clusterOf(machine) != "" {
		return nil
	}
	return field.Required(field.NewPath(beneath(under, "metadata.labels")),
		"nothing is done for a Machine without the label "+
			machinev1beta1.MachineClusterIDLabel+"; set it to the name of the cluster's infrastructure")
}

// requireValue returns the error for a missing providerSpec.
func requireValue(value *runtime.RawExtension) *field.Error {
	if value != nil && len(value.Raw) > 0 {
		return nil
	}
	return field.Required(shortPath, "a value must be provided")
}

// warningText formats a warning. Warnings about field names use the Machine API's wording, with a
// hint if there is one.
func warningText(under string, warning render.Warning) string {
	name := strings.TrimPrefix(strings.TrimPrefix(warning.Path, beneath(under, valuePath)), ".")
	detail := "Unknown field (" + name + ") will be ignored"
	switch {
	case warning.Canonical != "":
		detail = "Field (" + name + ") is read as " + warning.Canonical
	case !warning.Unknown:
		warning.Path = shortened(under, warning.Path)
		return warning.String()
	}
	if warning.Hint != "" {
		detail += "; " + warning.Hint
	}
	return (&field.Error{Type: field.ErrorTypeNotSupported, Field: shortPath.String(), BadValue: name,
		Detail: detail}).Error()
}

// errorTypes maps faults to the API's error types.
var errorTypes = map[render.Fault]field.ErrorType{
	render.Invalid: field.ErrorTypeInvalid, render.Missing: field.ErrorTypeRequired,
	render.Unsupported: field.ErrorTypeNotSupported,
}

// shortened returns a field's path as machine-api-operator writes it: paths in a providerSpec are
// the same for Machines and MachineSets.
func shortened(under, path string) string {
	rest, inside := strings.CutPrefix(path, beneath(under, valuePath))
	switch {
	case !inside:
		return path
	case rest == "":
		return shortPath.String()
	}
	return "providerSpec" + rest
}

// fieldErrors converts the errors of a check to API errors.
func fieldErrors(under string, err error) field.ErrorList {
	var found render.Errors
	if !errors.As(err, &found) {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	list := make(field.ErrorList, 0, len(found))
	for _, one := range found {
		detail := one.Problem
		if one.Fix != "" {
			detail += "; " + one.Fix
		}
		list = append(list, &field.Error{Type: errorTypes[one.Fault], Field: shortened(under, one.Path),
			BadValue: badValue(one.Value), Detail: detail})
	}
	return list
}

// badValue returns a value that prints like the given text.
func badValue(shown string) any {
	if shown == "" {
		return field.OmitValueType{}
	}
	if text, err := strconv.Unquote(shown); err == nil {
		return text
	}
	if json.Valid([]byte(shown)) {
		return json.RawMessage(shown)
	}
	return shown
}

// sameValue reports whether two providerSpecs are equal.
func sameValue(a, b *runtime.RawExtension) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case bytes.Equal(a.Raw, b.Raw):
		return true
	}
	x, xErr := decoded(a.Raw)
	y, yErr := decoded(b.Raw)
	return xErr == nil && yErr == nil && reflect.DeepEqual(x, y)
}

// decoded decodes JSON and keeps numbers as written.
func decoded(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

func beneath(under, path string) string {
	if under == "" {
		return path
	}
	return under + "." + path
}

// shorten truncates a value for messages.
func shorten(text string) string {
	const limit = 128
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
