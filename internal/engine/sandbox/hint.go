package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
)

// deniedFile matches error messages about a file that cannot be read: its path, or what masks it,
// and the kernel's reason.
var deniedFile = regexp.MustCompile("(?i)(/[^\\s:'\"()`]+|\\(sensitive\\))['\"`]?(?:: | \\()permission denied")

// Hint returns advice on an error message of an engine or provider, or "" unless the sandbox may be
// why a file cannot be read.
func (s *Sandbox) Hint(text string) string {
	if s.ABI() == 0 {
		return ""
	}
	found := deniedFile.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	file := found[1]
	if !filepath.IsAbs(file) {
		return "engines can only read files that --sandbox-read names; add the one that the credentials refer to"
	}
	concerns := func(dir string) bool { return inside(file, dir) }
	if slices.ContainsFunc(slices.Concat(systemFiles, s.read, s.hidden), concerns) {
		return "" // something else denies it, or the flag would be rejected
	}
	return "engines cannot read " + file + "; add the file or its folder to --sandbox-read"
}
