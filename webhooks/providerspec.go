package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// valuePath is where a providerSpec lies in a Machine.
const valuePath = "spec.providerSpec.value"

// shortPath is valuePath in the texts that the Machine API has always used. They are the same for Machines and MachineSets.
var shortPath = field.NewPath("providerSpec", "value")

// rules are what providerSpecs are held to.
type rules struct {
	catalog   *module.Catalog
	clusterID string
	cluster   module.ClusterValues
	// reader reads known, which is nil where nothing is known.
	reader platform.Reader
	known  *platform.Cluster
	// held remembers which validations have held.
	held *render.Held
}

// now returns the rules with what is known of the cluster at the moment.
func (r rules) now(ctx context.Context) (rules, error) {
	if r.reader == nil {
		return r, nil
	}
	var err error
	r.known, err = r.reader.Cluster(ctx)
	return r, err
}

// completed returns the providerSpec of a Machine that is created with the defaults of the module that serves it. One that no module
// serves is refused later.
func (r rules) completed(machine *machinev1beta1.Machine) *runtime.RawExtension {
	served, err := render.ModuleFor(r.catalog, machine, r.cluster[module.ValuePlatform])
	if err != nil {
		return machine.Spec.ProviderSpec.Value
	}
	complete, _ := render.Complete(machine, served, r.cluster)
	return complete.Spec.ProviderSpec.Value
}

// providerSpec checks the providerSpec of a Machine. under stands before the paths: "spec.template" where the Machine is a template.
func (r rules) providerSpec(machine *machinev1beta1.Machine, under string) admissionResult {
	var found admissionResult
	if missing := requireValue(machine.Spec.ProviderSpec.Value); missing != nil {
		found.refuse(missing)
		return found
	}
	served, err := render.ModuleFor(r.catalog, machine, r.cluster[module.ValuePlatform])
	if err != nil {
		found.errs = fieldErrors("", err)
		return found
	}
	input := render.Input{Machine: machine, ClusterID: r.clusterOf(machine), Module: served, Cluster: r.known, Under: under, Held: r.held}
	warnings, err := render.Check(input)
	for _, warning := range warnings {
		found.warnings = append(found.warnings, warningText(under, warning))
	}
	if err != nil {
		found.errs = fieldErrors(under, err)
		return found
	}
	found.secrets = secretsOf(input)
	return found
}

// clusterOf returns the cluster that the Machine belongs to, or will belong to.
func (r rules) clusterOf(machine *machinev1beta1.Machine) string {
	if label, given := machine.Labels[machinev1beta1.MachineClusterIDLabel]; given {
		return label
	}
	return r.clusterID
}

// unlabelled returns what to say of a Machine that will lack the name of its cluster; nil when it will not.
func (r rules) unlabelled(machine *machinev1beta1.Machine, under string) *field.Error {
	if r.clusterOf(machine) != "" {
		return nil
	}
	return field.Required(field.NewPath(beneath(under, "metadata.labels")), "nothing is done for a Machine without the label "+
		machinev1beta1.MachineClusterIDLabel+"; set it to the name of the cluster's infrastructure")
}

// requireValue returns the error of a providerSpec that is missing.
func requireValue(value *runtime.RawExtension) *field.Error {
	if value != nil && len(value.Raw) > 0 {
		return nil
	}
	return field.Required(shortPath, "a value must be provided")
}

// warningText returns a warning; one about the name of a field in the words of the Machine API, with the hint if there is one.
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
	return (&field.Error{Type: field.ErrorTypeNotSupported, Field: shortPath.String(), BadValue: name, Detail: detail}).Error()
}

// errorTypes are the faults of fields as the API calls them.
var errorTypes = map[render.Fault]field.ErrorType{
	render.Invalid: field.ErrorTypeInvalid, render.Missing: field.ErrorTypeRequired, render.Unsupported: field.ErrorTypeNotSupported,
}

// shortened returns the path of a field as machine-api-operator writes it: that of a providerSpec's is the same for Machines and MachineSets.
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

// fieldErrors returns the errors of a check as those of the API.
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
		list = append(list, &field.Error{Type: errorTypes[one.Fault], Field: shortened(under, one.Path), BadValue: badValue(one.Value), Detail: detail})
	}
	return list
}

// badValue returns a value that is shown as what it was shown as before.
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

// sameValue reports whether two providerSpecs say the same.
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

// decoded keeps numbers as they are written.
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

// shorten keeps messages short, whatever the data is.
func shorten(text string) string {
	const limit = 128
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
