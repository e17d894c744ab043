package render

import (
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// genericValuesPath is where the attributes of provider_spec stand in a Machine of the generic kind.
const genericValuesPath = valuePath + ".values"

// genericFields are the fields of a [v1alpha1.TerraformMachineProviderSpec].
var genericFields = append(slices.Clone(reserved), "module", "values", "credentialsSecret", "userDataSecret", "driftPolicy")

// isGeneric tells whether a providerSpec with the fields is a [v1alpha1.TerraformMachineProviderSpec].
func isGeneric(fields map[string]any) bool {
	return fields["apiVersion"] == v1alpha1.GroupVersion.String() && fields["kind"] == v1alpha1.TerraformMachineProviderSpecKind
}

// generic reads a [v1alpha1.TerraformMachineProviderSpec]. Unlike the attributes of a module, its own fields are what they are: no
// number passes for a string.
type generic struct {
	*findings
	fields map[string]any
	module *module.Module
}

// read fills in a spec. The drift policy is no input of a run, and is not looked at.
func (g generic) read(into *spec, machine *machinev1beta1.Machine) {
	g.warnings(machine)
	name, failed := moduleName(g.fields)
	if failed == nil && name != g.module.Name() {
		failed = &FieldError{
			Path: valuePath + ".module", Value: show(name), Mend: "name that one",
			Problem: fmt.Sprintf("it names the module %s, but the Machine is served by %q", show(name), g.module.Name()),
		}
	}
	if failed != nil {
		g.fail(failed)
		return
	}
	values, ok := g.object("values", "write the attributes of the module's variable provider_spec")
	if !ok {
		return
	}
	if into.values = values; values == nil {
		into.values = map[string]any{}
	}
	var path string
	if credentials := g.module.Spec().Credentials; credentials != nil {
		path = credentials.Path
	} else if g.fields["credentialsSecret"] != nil {
		g.warn(Warning{
			Path: valuePath + ".credentialsSecret", Message: fmt.Sprintf("the module %q reads no credentials, so it has no effect", g.module.Name()),
			Hint: "leave it out",
		})
	}
	into.credentials = g.reference("credentialsSecret", path, into.values)
	g.requireCredentials(into)
	into.userData = g.reference("userDataSecret", g.module.Spec().UserData.Path, into.values)
}

// moduleName answers the module that a spec of the generic kind names.
func moduleName(fields map[string]any) (string, *FieldError) {
	name, isString := fields["module"].(string)
	if isString && name != "" {
		return name, nil
	}
	return "", &FieldError{
		Path: valuePath + ".module", Fault: faultOf(fields["module"]), Value: show(fields["module"]), Mend: "name a provider module that is loaded",
		Problem: "the name of a provider module is required, but it is " + absence(fields["module"]),
	}
}

// warnings warns of fields that have no effect.
func (g generic) warnings(machine *machinev1beta1.Machine) {
	provides := g.module.Variable(module.VariableProviderSpec).Type
	for _, name := range slices.Sorted(maps.Keys(g.fields)) {
		if slices.Contains(genericFields, name) {
			continue
		}
		hint := spelling(name, genericFields)
		if provides.HasAttribute(name) {
			hint = "write it below values"
		}
		g.unknown(fieldPath(valuePath, name), hint)
	}
	if _, annotated := machine.Annotations[v1alpha1.DriftPolicyAnnotation]; annotated {
		g.warn(Warning{
			Path:    fieldPath("metadata.annotations", v1alpha1.DriftPolicyAnnotation),
			Message: "it has no effect beside a " + v1alpha1.TerraformMachineProviderSpecKind, Hint: "set driftPolicy in the providerSpec",
		})
	}
}

// object answers a field that is an object, nil when it is left out, and whether it is either.
func (g generic) object(name, mend string) (map[string]any, bool) {
	raw := g.fields[name]
	object, ok := raw.(map[string]any)
	if !ok && raw != nil {
		g.fail(&FieldError{Path: valuePath + "." + name, Problem: "an object is required, but it is " + nameOf(raw), Mend: mend})
		return nil, false
	}
	return object, true
}

// reference reads a field that names a Secret, and puts the name at the path of values unless there is one. It answers where the
// name stands in the end. The path is empty when the values have no place for it.
func (g generic) reference(field, path string, values map[string]any) reference {
	read := reference{path: valuePath + "." + field + ".name"}
	object, _ := g.object(field, "write it as "+field+`: {name: "text"}`)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name != "name" {
			g.unknown(fieldPath(valuePath+"."+field, name), spelling(name, []string{"name"}))
		}
	}
	var inner any
	if path != "" {
		inner = rawAt(values, path)
	}
	if object == nil {
		if isAbsent(inner) {
			return read
		}
		return reference{path: genericValuesPath + "." + path, raw: inner}
	}
	name, isString := object["name"].(string)
	if !isString || name == "" {
		g.fail(nameless(read.path, object["name"]))
		return read
	}
	read.raw = name
	switch other, isString := inner.(string); {
	case path == "":
	case isAbsent(inner):
		put(values, path, name)
	case isString && other != name:
		g.fail(&FieldError{
			Path: read.path, Value: show(name), Mend: "name it once",
			Problem: fmt.Sprintf("the Secret %s is named, but values.%s names %s", show(name), path, show(other)),
		})
	}
	return read
}

// requireCredentials fails when nothing names the credentials although the module needs some. What the values lack then is not told a
// second time.
func (g generic) requireCredentials(into *spec) {
	credentials := g.module.Spec().Credentials
	if !needsCredentials(g.module) || !isAbsent(into.credentials.raw) {
		return
	}
	if !g.covers(into.credentials.path) {
		g.fail(nameless(into.credentials.path, into.credentials.raw))
	}
	if credentials.Path != "" {
		put(into.values, credentials.Path, "")
	}
}
