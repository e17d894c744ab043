package load

import (
	"fmt"
	"io/fs"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
	"github.com/machine-iac/machine-iac-operator/internal/module/stack"
)

// Restore reads the content of a module, [module.Module.Files], that was loaded before, perhaps by an earlier version of this program, or that
// somebody has put in its place. Of the contract it is held to the rules about what a run may do beside its providers: no program, backend,
// other module or file of the manager. Others do not count: Machines were made with it, and a rule that came later must not keep them from
// being deleted. What can no longer be read is left out: the sizes of a catalogue that is no part of the content, defaults that cannot be used
// any more, and validations and checks that only the engine can evaluate, which it does in every run. It fails with a [*contract.Error] when
// too little can be read to run it, or when it breaks one of those rules. The digest is over all of fsys, so a content that was changed has
// another than the one that it is known by.
func Restore(fsys fs.FS) (*module.Module, error) { return restore(fsys, stack.CodeIn) }

// RestoreProven is Restore for content that is known to be what an administrator has chosen. The programs of stacks may be in any language then.
func RestoreProven(fsys fs.FS) (*module.Module, error) { return restore(fsys) }

func restore(fsys fs.FS, further ...func(snapshot.Files, *contract.Report)) (*module.Module, error) {
	files, err := snapshot.Read(fsys)
	if err != nil {
		return nil, err
	}
	found := &contract.Report{} // breaches of other rules are only reported where a part that a run needs cannot be read
	meta := contract.ReadMetadata(files, found)
	restored := check(files, meta, found)
	for _, rule := range further {
		rule(files, found)
	}
	restored.Files = files
	addMetadata(&restored, meta)
	if err := found.UnsafeErr(restored.Name, restored.Spec.Engine); err != nil {
		return nil, err
	}
	if missing := unusable(restored); missing != "" {
		found.Add(contract.Breach{What: missing, Problem: "cannot be read by this version of the operator", Fix: "run the version that the module was made for"})
		return nil, found.Err(restored.Name, restored.Spec.Engine)
	}
	contract.SoundValidations(restored.Variables)
	return module.New(restored), nil
}

// unusable returns the first part that a run cannot do without and that is not there, "" when all are.
func unusable(restored module.Definition) string {
	if restored.Name == "" {
		return module.MetadataFile
	}
	for _, name := range []string{module.VariableMachine, module.VariableProviderSpec, module.VariableUserData} {
		constraint := restored.Variables[name].Type
		if constraint == cty.NilType || name == module.VariableProviderSpec && !constraint.IsObjectType() {
			return fmt.Sprintf("variable %q", name)
		}
	}
	return stack.UnsoundLocal(restored)
}
