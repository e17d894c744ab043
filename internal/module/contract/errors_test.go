package contract_test

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// also is the change that adds lines to spec of module.yaml.
func also(lines string) moduletest.Change {
	return moduletest.Change{"module.yaml", "  capacity:\n", lines + "  capacity:\n"}
}

func TestAModuleSaysWhatErrorsProveAndWhatToDoAboutThem(t *testing.T) {
	m := moduletest.Load(t, also("  errors:\n    nothingMade: ['refused: ']\n    hints:\n      - {matches: 'no image', hint: correct ami.id}\n"))
	for text, want := range map[string]bool{
		"refused: no":                            true,
		"1 error occurred:\n\t* refused: no":     true,
		"it was lost":                            false,
		"waiting for the instance \"refused: \"": false, // a name from the providerSpec
		"waiting for the instance\nrefused: no":  false,
	} {
		if got := m.NothingMade(text); got != want {
			t.Errorf("NothingMade(%q) = %t, want %t", text, got, want)
		}
	}
	if got := m.Hint("there is no image") + m.Hint("another error"); got != "correct ami.id" {
		t.Errorf("the hints are %q", got)
	}
	for lines, want := range map[string]string{
		"    nothingMade: ['.*']\n":                             "spec.errors.nothingMade[0] matches every text, so no lost instance would ever be looked up",
		"    hints:\n      - {matches: '', hint: correct it}\n": "spec.errors.hints[0].matches[0] matches every text, so every error would have the hint",
		"    hints:\n      - {matches: x, hint: ''}\n":          "spec.errors.hints[0].hint does not say in one line what to do",
	} {
		_, err := load.Module(moduletest.FS(moduletest.Changed(t, also("  errors:\n"+lines))))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", lines, err, want)
		}
	}
}
