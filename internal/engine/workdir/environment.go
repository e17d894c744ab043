package workdir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reserved are names of environment variables that only the package that drives an engine sets: by themselves, and by how they begin.
type Reserved struct {
	Names    []string
	Prefixes []string
}

// Check refuses variables that can't be set, and those that a caller may not set.
func (r Reserved) Check(environment map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(environment[name], "\x00") {
			return fmt.Errorf("the environment variable %q can't be set: its name is empty or holds '=', or a zero byte is in it", name)
		}
		reserved := slices.Contains(r.Names, name) ||
			slices.ContainsFunc(r.Prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if reserved {
			return fmt.Errorf("the environment variable %s is the engine's own; leave it out", name)
		}
	}
	return nil
}

// CheckFiles is Check for the names of variables that lead to files, beside variables that hold values.
func (r Reserved) CheckFiles(files, environment map[string]string) error {
	paths := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, twice := environment[name]; twice {
			return fmt.Errorf("the environment variable %s is to be both a value and a file; keep one", name)
		}
		if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
			return fmt.Errorf("the environment variable %q can't name a file", name)
		}
		paths[name] = name
	}
	return r.Check(paths)
}
