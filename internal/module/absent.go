package module

import "regexp"

// Absent tells whether an error of the engine says, by the module's own patterns, that the instance that lookup/ imports does not
// exist.
func (m *Module) Absent(message string) bool {
	if m.spec.Lookup == nil {
		return false
	}
	for _, pattern := range m.spec.Lookup.Absent {
		// Load has compiled each pattern once, so none can fail here.
		if matched, err := regexp.MatchString(pattern, message); err == nil && matched {
			return true
		}
	}
	return false
}
