package load

import (
	"fmt"
	"io/fs"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// Restore reads the content of a module, [module.Module.Files], that was loaded before, possibly by
// an earlier version of this program, or that somebody has put in its place.
//
// Restore only enforces the rules about what a run may do besides its providers: no programs,
// backends, other modules or files of the manager. It ignores other rules: Machines were created
// with the module, and a newer rule must not prevent their deletion. It drops parts that are no
// longer readable: the sizes of an external catalog, invalid defaults, and validations and checks
// that only the engine can evaluate, which it does in every run.
//
// It returns a [*contract.Error] if too little is readable to run the module, or if it breaks one
// of those rules. The digest covers all of fsys, so modified content has another digest than the
// one it is known by.
func Restore(fsys fs.FS) (*module.Module, error) { return restore(fsys, stackCode) }

// RestoreProven is Restore for content that an administrator is known to have chosen. The programs
// of stacks may then be in any language.
func RestoreProven(fsys fs.FS) (*module.Module, error) { return restore(fsys) }

func restore(fsys fs.FS, further ...func(module.Files, *contract.Report)) (*module.Module, error) {
	files, err := module.ReadFiles(fsys)
	if err != nil {
		return nil, err
	}
	found := &contract.Report{} // breaches of other rules are reported only if a part that a run needs is unreadable
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
		found.Add(contract.Breach{What: missing, Problem: "cannot be read by this version of the operator",
			Fix: "run the version that the module was made for"})
		return nil, found.Err(restored.Name, restored.Spec.Engine)
	}
	contract.SoundValidations(restored.Variables)
	return module.New(restored), nil
}

// unusable returns the first missing part that a run needs, or "".
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
	return unsoundLocal(restored)
}
