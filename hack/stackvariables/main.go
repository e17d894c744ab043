// Command stackvariables writes the variables.tf of each stack that stands beside a provider module of the same name, and its checks.tf:
//
//	stackvariables [-check] [ROOT]
//
// ROOT is the repository, the current folder if left out. For each hack/stackvariables/NAME.hcl it writes stacks/NAME/variables.tf:
// modules/NAME/variables.tf, changed as NAME.hcl says. Where that says checks = true, stacks/NAME/checks.tf is the module's. With -check it writes nothing, and fails when a file is out of date.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// overlays is the folder of the files that say how a stack's variables differ from its module's.
const overlays = "hack/stackvariables"

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is out of date")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	process := write
	if *check {
		process = compare
	}
	if err := run(root, process); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run generates every file and hands it to process, with its path from root.
func run(root string, process func(root, path string, content []byte) error) error {
	found, err := filepath.Glob(filepath.Join(root, overlays, "*.hcl"))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%s has no files %s/*.hcl", root, overlays)
	}
	var problems []error
	for _, file := range found {
		name := strings.TrimSuffix(filepath.Base(file), ".hcl")
		files, err := stackFiles(root, name)
		problems = append(problems, err)
		for _, file := range files {
			problems = append(problems, process(root, file.path, file.content))
		}
	}
	return errors.Join(problems...)
}

// stackFiles returns a stack's variables.tf, and its checks.tf if it has one.
func stackFiles(root, name string) ([]source, error) {
	module, err := read(root, "modules/"+name+"/variables.tf")
	if err != nil {
		return nil, err
	}
	overlay, err := read(root, overlays+"/"+name+".hcl")
	if err != nil {
		return nil, err
	}
	content, checks, err := generate(module, overlay)
	if err != nil {
		return nil, err
	}
	files := []source{{path: "stacks/" + name + "/variables.tf", content: content}}
	if checks {
		from, err := read(root, "modules/"+name+"/checks.tf")
		if err != nil {
			return nil, err
		}
		files = append(files, source{path: "stacks/" + name + "/checks.tf", content: append(fmt.Appendf(nil, checksHeader, from.path), from.content...)})
	}
	return files, nil
}

// source is a file of the repository.
type source struct {
	path    string
	content []byte
}

func read(root, path string) (source, error) {
	content, err := os.ReadFile(filepath.Join(root, path))
	return source{path: path, content: content}, err
}

func write(root, path string, content []byte) error {
	return os.WriteFile(filepath.Join(root, path), content, 0o644)
}

// compare fails when a file has other content.
func compare(root, path string, content []byte) error {
	present, err := read(root, path)
	if err != nil {
		return err
	}
	if !bytes.Equal(present.content, content) {
		return fmt.Errorf("%s is out of date; run 'make generate'", path)
	}
	return nil
}
