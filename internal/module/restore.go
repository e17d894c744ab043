package module

import (
	"fmt"
	"io/fs"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// Restore reads back the content of a module, [Module.Files], that was loaded before, perhaps by an earlier version of this program. It
// is not held to the contract: Machines were made with it, and a rule that came later must not keep them from being deleted. What can
// no longer be told of it is left out: the sizes of a catalogue that is no part of the content, defaults that cannot be used any more, and
// validations and checks that only the engine can evaluate, which it does in every run. It fails with a [*ContractError] when too little can be read to run it. The digest is
// over all of fsys, so a content that was changed has another than the one that it is known by.
func Restore(fsys fs.FS) (*Module, error) {
	files, err := snapshot.Read(fsys)
	if err != nil {
		return nil, err
	}
	found := &report{} // what is wrong is only told where a part that a run needs cannot be read
	meta := readMetadata(files, found)
	var restored *Module
	if isStack(meta, files) {
		restored = readStack(files, found)
	} else {
		restored, _, _ = readHCL(files, found)
	}
	restored.files, restored.digest = files, files.Digest()
	if meta != nil {
		checkPaths(meta, restored.variables[VariableProviderSpec])
		restored.defaults = readDefaults(meta, restored.variables[VariableProviderSpec])
		restored.name, restored.spec = meta.Metadata.Name, meta.Spec
		restored.absent, restored.final, restored.sizes = meta.absent, meta.final, meta.sizes
	}
	if missing := restored.unusable(); missing != "" {
		found.add(Breach{What: missing, Problem: "cannot be read by this version of the operator", Fix: "run the version that the module was made for"})
		return nil, found.err(restored)
	}
	restored.dropUnsoundValidations()
	return restored, nil
}

// unusable names the first part that a run cannot do without and that is not there, "" when all are.
func (m *Module) unusable() string {
	if m.name == "" {
		return metadataFile
	}
	for _, name := range []string{VariableMachine, VariableProviderSpec, VariableUserData} {
		constraint := m.variables[name].Type
		if constraint == cty.NilType || name == VariableProviderSpec && !constraint.IsObjectType() {
			return fmt.Sprintf("variable %q", name)
		}
	}
	return m.unsoundLocal()
}

// dropUnsoundValidations keeps the validations that the contract allows, which are those that can be evaluated here.
func (m *Module) dropUnsoundValidations() {
	for name, variable := range m.variables {
		var sound []Validation
		for _, validation := range variable.Validations {
			own := &report{}
			validationCheck{variables: m.variables, found: own, context: unknownContext(m.variables)}.check(validation)
			if len(own.breaches) == 0 {
				sound = append(sound, validation)
			}
		}
		variable.Validations = sound
		m.variables[name] = variable
	}
}
