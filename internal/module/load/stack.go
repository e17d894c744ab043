package load

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

const (
	// projectFile contains the program of a stack, or names its runtime.
	projectFile = contract.ProjectFile
	// packagesFolder contains the declarations of the packages that a program uses.
	packagesFolder = "sdks"
	// instanceName is the name of the resource that is the instance.
	instanceName = "this"
)

// stackHCL are the HCL files of a stack, each with the only block type allowed in it.
var stackHCL = map[string]string{"variables.tf": "variable", "locals.tf": "locals", "checks.tf": "check"}

// checkStack reads a stack and checks it against the contract. meta may be nil.
func checkStack(files module.Files, meta *contract.Metadata, found *contract.Report) module.Definition {
	checkLayout(files, found)
	loaded := read(files, found)
	programCheck{files: files, metadata: meta, module: loaded, found: found}.check()
	return loaded
}

// read reads what a run of a stack needs.
func read(files module.Files, found *contract.Report) module.Definition {
	blocks := sortBlocks(files, found)
	loaded := module.Definition{
		Variables:   contract.ReadVariables(blocks["variable"], found),
		Packages:    readPackages(files, found),
		LookupFiles: searchFiles(files, contract.LookupFolder),
		AdoptFiles:  searchFiles(files, contract.AdoptFolder),
	}
	loaded.Locals = readLocals(blocks["locals"], loaded.Variables, found)
	loaded.Checks = readChecks(blocks["check"], loaded.Variables, found)
	loaded.Providers = bridged(loaded.Packages)
	if program := readProgram(files, projectFile, found); program != nil {
		if address := program.instance(loaded.Packages); address != "" {
			loaded.Instances = []string{address}
		}
	}
	return loaded
}

// sortBlocks groups the blocks of a stack's HCL by type.
func sortBlocks(files module.Files, found *contract.Report) map[string][]*hclsyntax.Block {
	sorted := map[string][]*hclsyntax.Block{}
	for _, name := range files.Names(contract.IsRootHCL) {
		allowed, known := stackHCL[name]
		if !known {
			continue
		}
		body := contract.ParseHCL(files[name], name, found)
		if body == nil {
			continue
		}
		for attribute, at := range body.Attributes {
			found.At(at.Range(), attribute, "is outside of any block", "move it into a block, or remove it")
		}
		for _, block := range body.Blocks {
			if block.Type != allowed {
				found.At(block.Range(), contract.Title(block), fmt.Sprintf("does not belong in %s of a stack", name),
					"use only blocks of the type "+allowed+"; resources are declared in "+projectFile)
				continue
			}
			sorted[block.Type] = append(sorted[block.Type], block)
		}
	}
	return sorted
}

// readChecks reads check blocks. No engine would evaluate those that depend on anything but
// variables.
func readChecks(blocks []*hclsyntax.Block, variables map[string]module.Variable,
	found *contract.Report) []module.Check {
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			condition := inner.Body.Attributes["condition"]
			if inner.Type == "assert" && condition != nil && !contract.OnlyVariables(condition.Expr.Variables()) {
				found.At(inner.DefRange(), contract.Title(block)+" assert", "must refer to variables, and to nothing else",
					"refer to var.machine and var.provider_spec")
			}
		}
	}
	return contract.ReadChecks(blocks, variables, found)
}

// otherPrograms are files in which Pulumi would find another project or program.
var otherPrograms = []string{"Pulumi.yml", "Pulumi.json", "Main.yaml", "Main.json"}

// checkLayout checks which files exist.
func checkLayout(files module.Files, found *contract.Report) {
	if _, exists := files["variables.tf"]; !exists {
		found.Add(contract.Breach{File: "variables.tf", Problem: "is missing",
			Fix: "declare the variables machine, provider_spec and user_data: providerSpecs are checked against their types"})
	}
	if _, exists := files[module.LockFile]; exists {
		found.Add(contract.Breach{File: module.LockFile, Problem: "pins providers of another engine", Fix: "remove it; " + packagesFolder + "/ pins a stack's"})
	}
	for name := range files {
		if contract.InfluencesRun(name) {
			checkFile(name, found)
		}
	}
}

func checkFile(name string, found *contract.Report) {
	_, isHCL := stackHCL[name]
	base := path.Base(name)
	switch folder := path.Dir(name); {
	case isHCL:
	case isOtherHCL(base):
		found.Add(contract.Breach{File: name, Problem: "is HCL, which a stack does not run",
			Fix: "use only variables.tf, locals.tf and checks.tf; the program is in " + projectFile})
	case folder != "." && !contract.IsSearchFolder(folder):
	case slices.Contains(otherPrograms, base):
		found.Add(contract.Breach{File: name, Problem: "would run instead of " + projectFile,
			Fix: "write the program into " + path.Join(folder, projectFile), Unsafe: true})
	case strings.HasPrefix(base, "Pulumi.") && base != projectFile:
		found.Add(contract.Breach{File: name, Problem: "contains stack settings, which only the operator may write",
			Fix: "remove it; what users can set are fields of provider_spec", Unsafe: true})
	}
}

func isOtherHCL(base string) bool {
	return slices.ContainsFunc([]string{".tf", ".tf.json", ".tofu", ".tofu.json", ".tfvars", ".tfvars.json"},
		func(suffix string) bool { return strings.HasSuffix(base, suffix) })
}
