// Command stackvariables writes variables.tf, and checks.tf, of each stack with a provider module of the same name:
//
//	stackvariables [-check] [ROOT]
//
// For each hack/stackvariables/NAME.hcl it writes stacks/NAME/variables.tf: modules/NAME/variables.tf, changed as
// NAME.hcl says. With checks = true it also copies the module's checks.tf. With -check it writes nothing, and fails if
// a file is out of date. ROOT is the repository, by default the current folder.
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

// overlays is the folder of files that define how a stack's variables differ from its module's.
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

// run generates each file and passes it to process with its path relative to root.
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
		files = append(files, source{path: "stacks/" + name + "/checks.tf",
			content: append(fmt.Appendf(nil, checksHeader, from.path), from.content...)})
	}
	return files, nil
}

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

// compare returns an error if a file's content differs.
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
