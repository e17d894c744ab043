package module

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

const (
	// projectFile holds the program of a stack, or names what does.
	projectFile = "Pulumi.yaml"
	// lookupProjectFile holds the program that finds an instance which the checkpoint lost.
	lookupProjectFile = lookupFolder + "/" + projectFile
	// packagesFolder holds the declarations of the packages that a program uses.
	packagesFolder = "sdks"
)

// stackHCL are the files of HCL that a stack may have, each with the one type of blocks in it.
var stackHCL = map[string]string{"variables.tf": "variable", "locals.tf": "locals", "checks.tf": "check"}

// isStack tells whether Pulumi runs the module. Where module.yaml does not tell, the program does.
func isStack(meta *metadata, files snapshot.Files) bool {
	if meta != nil {
		return meta.Spec.Engine == v1alpha1.EnginePulumi
	}
	_, exists := files[projectFile]
	return exists
}

// loadStack reads a stack and holds it to the contract. meta may be nil.
func loadStack(files snapshot.Files, meta *metadata, found *report) *Module {
	checkStackLayout(files, found)
	loaded := readStack(files, found)
	programCheck{files: files, metadata: meta, module: loaded, found: found}.check()
	return loaded
}

// readStack reads what a run of a stack needs.
func readStack(files snapshot.Files, found *report) *Module {
	blocks := sortStackBlocks(files, found)
	read := &Module{variables: checkVariables(blocks["variable"], found)}
	read.locals = readLocals(blocks["locals"], read.variables, found)
	read.checks = readStackChecks(blocks["check"], read.variables, found)
	read.packages = readPackages(files, found)
	read.providers = bridged(read.packages)
	if program := readProgram(files, projectFile, found); program != nil {
		read.instance = program.instance(read.packages)
	}
	return read
}

// sortStackBlocks groups the blocks of a stack's HCL by type.
func sortStackBlocks(files snapshot.Files, found *report) map[string][]*hclsyntax.Block {
	sorted := map[string][]*hclsyntax.Block{}
	for _, name := range files.Names(isRootHCL) {
		allowed, known := stackHCL[name]
		if !known {
			continue
		}
		body := parse(files[name], name, found)
		if body == nil {
			continue
		}
		for attribute, at := range body.Attributes {
			found.at(at.Range(), attribute, "stands outside of any block", "move it into a block, or remove it")
		}
		for _, block := range body.Blocks {
			if block.Type != allowed {
				found.at(block.Range(), title(block), fmt.Sprintf("does not belong into %s of a stack", name), "keep to blocks of the type "+allowed+"; what is made stands in "+projectFile)
				continue
			}
			sorted[block.Type] = append(sorted[block.Type], block)
		}
	}
	return sorted
}

// readStackChecks reads check blocks. No engine would evaluate those that look at anything but variables.
func readStackChecks(blocks []*hclsyntax.Block, variables map[string]Variable, found *report) []Check {
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			condition := inner.Body.Attributes["condition"]
			if inner.Type == "assert" && condition != nil && !ofVariables(condition.Expr.Variables()) {
				found.at(inner.DefRange(), title(block)+" assert", "looks at something else than variables, or at none", "refer to var.machine and var.provider_spec")
			}
		}
	}
	return readChecks(blocks, variables, found)
}

// otherPrograms are files in which Pulumi, or its YAML, would find another project or another program.
var otherPrograms = []string{"Pulumi.yml", "Pulumi.json", "Main.yaml", "Main.json"}

// checkStackLayout checks which files there are.
func checkStackLayout(files snapshot.Files, found *report) {
	if _, exists := files["variables.tf"]; !exists {
		found.add(Breach{File: "variables.tf", Problem: "is missing", Fix: "declare the variables machine, provider_spec and user_data: their types are what a providerSpec is checked against"})
	}
	if _, exists := files[snapshot.LockFile]; exists {
		found.add(Breach{File: snapshot.LockFile, Problem: "pins providers of another engine", Fix: "remove it; " + packagesFolder + "/ pins a stack's"})
	}
	for name := range files {
		if influencesRun(name) {
			checkStackFile(name, found)
		}
	}
}

func checkStackFile(name string, found *report) {
	_, isHCL := stackHCL[name]
	base := path.Base(name)
	switch folder := path.Dir(name); {
	case isHCL:
	case isOtherHCL(base):
		found.add(Breach{File: name, Problem: "is HCL, which nobody runs in a stack", Fix: "keep to variables.tf, locals.tf and checks.tf; the program stands in " + projectFile})
	case folder != "." && folder != lookupFolder:
	case slices.Contains(otherPrograms, base):
		found.add(Breach{File: name, Problem: "would be run in place of " + projectFile, Fix: "write the program into " + path.Join(folder, projectFile)})
	case strings.HasPrefix(base, "Pulumi.") && base != projectFile:
		found.add(Breach{File: name, Problem: "holds settings of a stack, which are the operator's to write", Fix: "remove it; what a user may set is a field of provider_spec"})
	}
}

func isOtherHCL(base string) bool {
	return slices.ContainsFunc([]string{".tf", ".tf.json", ".tofu", ".tofu.json", ".tfvars", ".tfvars.json"},
		func(suffix string) bool { return strings.HasSuffix(base, suffix) })
}
