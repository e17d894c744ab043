package workdir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reserved are environment variables that only the package that drives an engine sets, by name and
// by prefix.
type Reserved struct {
	Names    []string
	Prefixes []string
}

// Check rejects variables that cannot be set, and reserved ones.
func (r Reserved) Check(environment map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(environment[name], "\x00") {
			return fmt.Errorf("invalid environment variable %q: the name must not be empty or contain '=', and neither name nor value may contain a NUL byte", name)
		}
		reserved := slices.Contains(r.Names, name) ||
			slices.ContainsFunc(r.Prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if reserved {
			return fmt.Errorf("environment variable %s is reserved for the engine; remove it", name)
		}
	}
	return nil
}

// CheckFiles is like Check for variables that hold paths of files. environment are the variables
// that hold values.
func (r Reserved) CheckFiles(files, environment map[string]string) error {
	paths := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, twice := environment[name]; twice {
			return fmt.Errorf("environment variable %s is set as both a value and a file; keep one", name)
		}
		if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
			return fmt.Errorf("environment variable %q cannot be used as a file name", name)
		}
		paths[name] = name
	}
	return r.Check(paths)
}
