package contract

import (
	"fmt"
	"regexp"
	"slices"
)

// actionForms are how clouds write what may be done.
var actionForms = map[string]*regexp.Regexp{
	"AWS":   regexp.MustCompile(`^[a-z0-9-]+:[A-Za-z0-9]+$`),
	"Azure": regexp.MustCompile(`^[A-Za-z]+\.[A-Za-z]+(/[A-Za-z]+)+$`),
	"GCP":   regexp.MustCompile(`^[a-z]+\.[A-Za-z]+\.[A-Za-z]+$`),
}

// checkRights checks the permissions that the credentials must have.
func (m *Metadata) checkRights() {
	for n, rights := range m.Spec.Rights {
		at := fmt.Sprintf("spec.rights[%d]", n)
		form, known := actionForms[rights.Provider]
		if !known {
			m.AtField(at+".provider", fmt.Sprintf("is %q", rights.Provider), "write AWS, Azure or GCP")
			continue
		}
		if len(rights.Actions) == 0 {
			m.AtField(at+".actions", "is empty", "list what the module does, or leave the entry out")
		}
		for i, action := range rights.Actions {
			if !form.MatchString(action) {
				m.AtField(fmt.Sprintf("%s.actions[%d]", at, i), fmt.Sprintf("is %q, which is no action of %s", action, rights.Provider), "write one action, without wildcards")
			}
			if slices.Contains(rights.Actions[:i], action) {
				m.AtField(fmt.Sprintf("%s.actions[%d]", at, i), fmt.Sprintf("names %s a second time", action), "keep one")
			}
		}
	}
}
