package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
)

// deniedFile matches how programs say that a file may not be read: its path, or what masks that, and the kernel's reason.
var deniedFile = regexp.MustCompile("(?i)(/[^\\s:'\"()`]+|\\(sensitive\\))['\"`]?(?:: | \\()permission denied")

// Hint returns what to do about a text of an engine or a provider, "" unless it says that a file may not be read and the sandbox may be why.
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
		return "engines read no file that --sandbox-read does not name: name the one that the credentials name"
	}
	concerns := func(dir string) bool { return inside(file, dir) }
	if slices.ContainsFunc(slices.Concat(systemFiles, s.read, s.hidden), concerns) {
		return "" // something else denies it, or the flag would be refused
	}
	return "engines may not read " + file + ": name it, or its folder, by --sandbox-read"
}
