package render

import (
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Field returns the value at a path of the Machine's providerSpec, joined by dots and as the author
// wrote it, or nil.
func Field(machine *machinev1beta1.Machine, from *module.Module, path string) any {
	raw := rawAt(readSpec(machine, from, &findings{}).values, path)
	if module.IsUnset(raw) {
		return nil
	}
	return raw
}

// ProviderSpec returns the Machine's providerSpec as the module's variable provider_spec, as
// [Render] would pass it to a run: checked, with defaults applied. It needs only the providerSpec
// of the Machine, and no Secrets. The error is an [Errors] if the providerSpec is at fault.
func ProviderSpec(machine *machinev1beta1.Machine, from *module.Module) (cty.Value, error) {
	if machine == nil || from == nil {
		return cty.NilVal, errors.New("rendering a providerSpec: a Machine and a module are required")
	}
	found := &findings{}
	value := readSpec(machine, from, found).provides(from, found)
	if err := found.err(); err != nil {
		return cty.NilVal, err
	}
	return value, nil
}
