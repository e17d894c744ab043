package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
)

var (
	// requirement is a provider that a module requires: its name, source and version.
	requirement = regexp.MustCompile(`(\w+)\s*=\s*\{\s*source\s*=\s*"([^"]+)"\s*version\s*=\s*"([^"]+)"`)
	// block is a resource or data source of a module: its kind, name, and the provider in its name.
	block = regexp.MustCompile(`(?m)^\s*(resource|data)\s+"(([a-z0-9]+)_\w+)"`)
	// token is a resource or function of a stack: its provider, get for a function, and the rest of its name.
	token   = regexp.MustCompile(`\b([a-z0-9]+):(get)?([A-Z]\w*)`)
	capital = regexp.MustCompile(`[A-Z]`)
)

// use is a resource or data source of a provider, and a file that has it.
type use struct{ kind, name, provider, file string }

// readModules returns the providers that modules and stacks require, as address@version, and what they use of them.
func readModules(t *testing.T) (required map[string]string, uses []use) {
	t.Helper()
	required = map[string]string{}
	repository := os.DirFS("../../..")
	for _, root := range []string{"modules", "stacks", "examples"} {
		err := fs.WalkDir(repository, root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			isProgram := entry.Name() == "Pulumi.yaml"
			if path.Ext(file) != ".tf" && !isProgram {
				return nil
			}
			content, err := fs.ReadFile(repository, file)
			if err != nil {
				return err
			}
			if isProgram {
				for _, found := range token.FindAllStringSubmatch(string(content), -1) {
					kind := "resource"
					if found[2] != "" {
						kind = "data"
					}
					snake := capital.ReplaceAllStringFunc(found[3], func(letter string) string { return "_" + strings.ToLower(letter) })
					uses = append(uses, use{kind, found[1] + snake, found[1], file})
				}
				return nil
			}
			for _, found := range requirement.FindAllStringSubmatch(string(content), -1) {
				required["registry.opentofu.org/"+found[2]+"@"+found[3]] = file
			}
			for _, found := range block.FindAllStringSubmatch(string(content), -1) {
				uses = append(uses, use{found[1], found[2], found[3], file})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return required, uses
}

func TestRecordsHaveWhatModulesUse(t *testing.T) {
	required, uses := readModules(t)
	served := map[string]*providerSchema{}
	for provider, file := range required {
		address, version, _ := strings.Cut(provider, "@")
		name := path.Base(address)
		schema, err := readRecord(name, version)
		if err != nil {
			t.Errorf("%s requires %s: %v", file, provider, err)
			continue
		}
		if schema.Address != address {
			t.Errorf("%s requires %s, but the record of %s %s is of %s", file, address, name, version, schema.Address)
		}
		served[name] = schema
	}
	compared := map[string]bool{}
	for _, used := range uses {
		schema := served[used.provider]
		if schema == nil {
			continue // built into the engine, such as terraform_data
		}
		var described *tfprotov5.Schema
		if used.kind == "data" {
			described = schema.DataSources[used.name]
		} else {
			described = schema.Resources[used.name]
		}
		if described == nil {
			t.Errorf("%s uses %s %s, which the record of %s lacks", used.file, used.kind, used.name, schema.Address)
		}
		compared[used.provider] = true
	}
	files, err := fs.Glob(records, "schemas/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, version, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".json"), "-")
		schema, err := readRecord(name, version)
		if err != nil {
			t.Error(err)
			continue
		}
		if required[schema.Address+"@"+version] == "" || !compared[name] {
			t.Errorf("no module uses %s %s; remove its record", schema.Address, version)
		}
	}
}
