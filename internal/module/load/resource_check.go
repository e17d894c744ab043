package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/repeat"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

const pluginURL = "pluginDownloadURL"

// resourceFields and resourceOptions are the allowed fields of a resource. Others would be ignored,
// or break a rule.
var (
	resourceFields  = []string{"type", "defaultProvider", "properties", "options", "get", repeat.Field}
	resourceOptions = []string{
		"additionalSecretOutputs", "aliases", "customTimeouts", "deleteBeforeReplace", "deletedWith", "dependsOn",
		"envVarMappings",
		"hideDiffs", "ignoreChanges", "parent", "provider", "providers", "replaceOnChanges", "replaceWith",
		"replacementTrigger",
	}
	refusedOptions = map[string][2]string{
		"protect":        {"prevents the deletion of its Machine", "remove it"},
		"retainOnDelete": {"leaves the instance behind when its Machine is deleted", "remove it"},
		"import":         {"would import in every run", "remove it; lookup/ finds what an interrupted run has created"},
		"version":        {"pins a version in addition to " + packagesFolder + "/", "remove it, and pin the package there"},
		pluginURL:        {"would download a plugin", "remove it: plugins come from the manager's folder of plugins"},
		"name":           {"gives it another name than its key", "remove it: it is identified by its key"},
	}
)

func (c programCheck) resource(p *program, one programResource) {
	what := "resources." + one.name
	refuse := func(what string, fields []yamlField, allowed []string) {
		for _, field := range fields {
			if slices.Contains(allowed, field.name) {
				continue
			}
			reason, known := refusedOptions[field.name]
			if !known {
				reason = [2]string{"is unknown", "remove it, or correct the spelling; allowed are " + strings.Join(allowed, ", ")}
			}
			report := p.add
			if !known || field.name == pluginURL {
				report = p.unsafe // no rule checks it
			}
			report(c.found, field.line, what+"."+field.name, reason[0], reason[1])
		}
	}
	refuse(what, one.fields, resourceFields)
	if options := fieldOf(one.fields, "options"); options != nil {
		refuse(what+".options", fieldsOf(options.value), resourceOptions)
	}
	if each := fieldOf(one.fields, repeat.Field); each != nil && one.name == instanceName {
		p.add(c.found, each.line, what+"."+repeat.Field, "repeats the instance, but a Machine has only one", "remove it")
	}
	switch name := packageOf(one.typ); {
	case one.typ == "":
		p.add(c.found, one.line, what, "has no type", "write type: package:module:Type")
	case name == "pulumi":
		p.unsafe(c.found, one.line, what, fmt.Sprintf("is a %s, which reads another stack or creates nothing", one.typ),
			"remove it")
	case programPackage(name) != "":
		p.unsafe(c.found, one.line, what, programPackage(name),
			"use a provider's resource; what runs on the instance is user data")
	}
}

// programPackage returns what a package does besides managing infrastructure, or "" if it is
// allowed.
func programPackage(name string) string {
	if name == "command" {
		return "runs programs"
	}
	return contract.ProgramProvider(name)
}

// packages checks that exactly the packages that programs use are pinned.
func (c programCheck) packages(programs ...*program) {
	used := map[string]bool{}
	for _, p := range programs {
		if p == nil {
			continue
		}
		if !p.isYAML() { // what code uses is unknown
			return
		}
		for _, one := range p.resources {
			c.pinned(p, used, yamlText{text: one.typ, line: one.line}, "resources."+one.name)
		}
		for _, one := range p.calls {
			c.pinned(p, used, one, one.text)
		}
	}
	for _, one := range c.module.Packages {
		if !used[one.Name] {
			c.found.Add(contract.Breach{File: packagesFolder, What: fmt.Sprintf("package %q", one.Name),
				Problem: "is pinned but not used", Fix: "remove its declaration"})
		}
	}
}

func (c programCheck) pinned(p *program, used map[string]bool, token yamlText, what string) {
	name := packageOf(token.text)
	if used[name] = true; name == "" || name == "pulumi" {
		return
	}
	if !slices.ContainsFunc(c.module.Packages, func(one module.Package) bool { return one.Name == name }) {
		p.add(c.found, token.line, what, fmt.Sprintf("uses the package %q, which is not pinned", name),
			"declare it in "+packagesFolder+"/ with 'pulumi package add'")
	}
}
