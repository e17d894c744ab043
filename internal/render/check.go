package render

import (
	"errors"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Check answers the errors and the warnings of [Render] before there is anything to run: of what Secrets hold it knows nothing, and
// what the Machine does not have yet (name, UID, cluster) may become anything. What Check refuses, Render refuses too; of what it
// accepts, Render refuses only what depends on what is not known. The error is an [Errors] when the Machine is at fault; any other
// error is a mistake of the caller.
func Check(input Input) ([]Warning, error) {
	if input.Machine == nil || input.Module == nil {
		return nil, errors.New("checking inputs: a Machine and a module are required")
	}
	found := &findings{under: input.Under}
	providerSpec := renderProviderSpec(input, found)
	checkRefs(input, found)
	credentialKeys(input.Module, providerSpec, found)
	userData := cty.UnknownVal(cty.String).RefineNotNull()
	if !namesUserData(input.Module, providerSpec) {
		userData = cty.StringVal("")
	}
	validate(input.Module, foreseeMachine(input), providerSpec, userData, found)
	return found.warned(), found.err()
}

// checkRefs adds what is wrong with the names of Secrets, unless the type says so already.
func checkRefs(input Input, found *findings) {
	_, _, err := Refs(input.Machine, input.Module)
	var failed Errors
	if !errors.As(err, &failed) {
		return
	}
	for _, one := range failed {
		if !found.covers(one.Path) {
			found.fail(one)
		}
	}
}

// generatedPrefix is how much of a generateName the API server keeps.
const generatedPrefix = 58

// foreseeMachine answers the variable machine as far as it is known of a Machine that is yet to be made.
func foreseeMachine(input Input) cty.Value {
	foreseen := renderMachine(input).AsValueMap()
	open := cty.UnknownVal(cty.String).RefineNotNull()
	for _, name := range []string{"name", "uid", "cluster_id"} {
		if foreseen[name].AsString() == "" {
			foreseen[name] = open
		}
	}
	if begun := input.Machine.GenerateName; begun != "" && input.Machine.Name == "" {
		foreseen["name"] = open.Refine().StringPrefix(begun[:min(len(begun), generatedPrefix)]).NewValue()
	}
	return cty.ObjectVal(foreseen)
}

// namesUserData tells whether the providerSpec names, or may name, a Secret with user data.
func namesUserData(from *module.Module, providerSpec cty.Value) bool {
	userData := from.Spec().UserData
	if userData == nil || userData.Path == "" {
		return false
	}
	at := providerSpec
	for step := range strings.SplitSeq(userData.Path, ".") {
		switch {
		case !at.IsKnown():
			return true
		case at.IsNull():
			return false
		}
		at = at.GetAttr(step)
	}
	return !at.IsKnown() || !at.IsNull() && at.AsString() != ""
}
