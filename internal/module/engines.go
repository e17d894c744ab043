package module

import (
	"cmp"
	"slices"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Traits are what differs between the modules of engines, as far as callers need to know.
type Traits struct {
	// Engine runs the modules.
	Engine v1alpha1.Engine
	// Noun is what users call a module of the engine. A providerSpec of KindForAny names the module in a field of this
	// name.
	Noun string
	// Title is Noun with the words that tell it from the modules of other engines.
	Title string
	// KindForAny is the kind of machine-iac.io/v1alpha1 that serves every module of the engine.
	KindForAny string
	// StateFormat is the format of the engine's states, as in [statefile.State].
	StateFormat string
	// HCL says that a module is HCL alone, which OpenTofu and Terraform can check, test and destroy. For other
	// engines, they can only check the variables.
	HCL bool
}

// engines has the traits of every engine. The first engine is the default.
var engines = []Traits{
	{
		Engine: v1alpha1.EngineTerraform, Noun: "module", Title: "provider module",
		KindForAny: v1alpha1.TerraformMachineProviderSpecKind, StateFormat: statefile.FormatTerraform, HCL: true,
	},
	{
		Engine: v1alpha1.EnginePulumi, Noun: "stack", Title: "stack",
		KindForAny: v1alpha1.PulumiMachineProviderSpecKind, StateFormat: statefile.FormatPulumi,
	},
}

// Engines returns the traits of every engine, the default engine first.
func Engines() []Traits { return slices.Clone(engines) }

// TraitsOf returns the traits of an engine. An unknown engine has those of the default engine.
func TraitsOf(engine v1alpha1.Engine) Traits {
	return find(func(one Traits) bool { return one.Engine == engine })
}

// EngineOfState returns the engine whose states have the format.
func EngineOfState(format string) v1alpha1.Engine {
	return find(func(one Traits) bool { return one.StateFormat == format }).Engine
}

func find(matches func(Traits) bool) Traits {
	return engines[max(slices.IndexFunc(engines, matches), 0)]
}

// Engine returns the engine that runs the module.
func (m *Module) Engine() v1alpha1.Engine { return cmp.Or(m.definition.Spec.Engine, engines[0].Engine) }

// Traits returns the traits of the module's engine.
func (m *Module) Traits() Traits { return TraitsOf(m.Engine()) }
