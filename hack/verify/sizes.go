package verify

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// The budget of a package: lines and exported names at the top level. Generated files and tests are not counted.
const (
	maxPackageLines = 3000
	maxPackageNames = 50
	// maxAPINames is maxPackageNames for an API, whose types are all exported by nature.
	maxAPINames     = 80
	minPackageLines = 150
)

// smallPackages are those below minPackageLines, with the reason. Commands, examples, and what helps tests and developers need none.
var smallPackages = map[string]string{
	"internal/cluster/events": "shared by controllers and actuators, which may not import one another",
	"internal/logs":           "shared by the programs, which may not import one another",
	"internal/keyfile":        "shared by the stores of modules and of states, which know nothing of each other",
	"internal/plan/text":      "shared by the steps of a plan, which may not import one another",
	"install":                 "carries the embed.FS of the folder that it is in",
	"modules":                 "carries the embed.FS of the folder that it is in",
	"stacks":                  "carries the embed.FS of the folder that it is in",
}

// size is what one package has.
type size struct {
	folder string
	// command says that it is a main package.
	command bool
	lines   int
	names   []string
}

// sizesOf returns the sizes of all packages of a tree, by folder.
func sizesOf(tree fs.FS) ([]size, error) {
	found := map[string]*size{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || name == "bin"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if ast.IsGenerated(file) {
			return nil
		}
		folder := path.Dir(name)
		if found[folder] == nil {
			found[folder] = &size{folder: folder, command: file.Name.Name == "main"}
		}
		found[folder].lines += bytes.Count(content, []byte("\n"))
		found[folder].names = append(found[folder].names, exported(file)...)
		return nil
	})
	var sizes []size
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		sizes = append(sizes, *found[folder])
	}
	return sizes, err
}

// exported returns the exported names at the top level of a file; methods are not.
func exported(file *ast.File) []string {
	var names []*ast.Ident
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
		}
	}
	var out []string
	for _, name := range names {
		if name.IsExported() {
			out = append(out, name.Name)
		}
	}
	return out
}

// oversized returns what is wrong with the sizes of packages, each with what to do. small are the packages that may be small.
func oversized(sizes []size, small map[string]string) []string {
	var out []string
	unused := maps.Clone(small)
	for _, s := range sizes {
		if s.lines > maxPackageLines {
			out = append(out, fmt.Sprintf("%s has %d lines without tests, %d at most; move what has a narrow interface into a package of its own", s.folder, s.lines, maxPackageLines))
		}
		most := maxPackageNames
		if strings.HasPrefix(s.folder, "api/") {
			most = maxAPINames
		}
		if len(s.names) > most {
			out = append(out, fmt.Sprintf("%s has %d exported names, %d at most; unexport what no other package uses, or split the package", s.folder, len(s.names), most))
		}
		if s.lines >= minPackageLines || s.needsNoReason() {
			continue
		}
		if small[s.folder] == "" {
			out = append(out, fmt.Sprintf("%s has %d lines, fewer than %d; move it into the package that it serves, or name the reason in hack/verify/sizes.go",
				s.folder, s.lines, minPackageLines))
		}
		delete(unused, s.folder)
	}
	for _, folder := range slices.Sorted(maps.Keys(unused)) {
		out = append(out, fmt.Sprintf("%s is not a small package; remove its row from hack/verify/sizes.go", folder))
	}
	return out
}

// needsNoReason reports whether a package may be small without a reason.
func (s size) needsNoReason() bool {
	if s.command || strings.HasPrefix(s.folder, "examples/") {
		return true
	}
	r := ruleFor(rules, s.folder)
	return r != nil && r.helps
}
