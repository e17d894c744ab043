package render

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	known := []string{"instanceType", "ami", "placement", "Optional", "gp2", "gp3", "x", ""}
	for name, want := range map[string]string{
		"instanceTyp": "instanceType", "instancetypes": "instanceType", "placment": "placement", "optional": "Optional",
		"amy": "ami", "instanceType": "", "instance": "", "gp4": "", "y": "", "": "",
		strings.Repeat("placement", 20): "",
	} {
		if got := closest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestACloseNameIsSuggested(t *testing.T) {
	warnings, err := Check(inputWith(t, valid+`,"sizze":"small"}`))
	if want := `spec.providerSpec.value.sizze: unknown field, ignored; did you mean "size"?`; err != nil ||
		len(warnings) != 1 || warnings[0].String() != want {
		t.Errorf("got %v, %v, want %s", warnings, err, want)
	}
	from := moduleWith(t, readFile(t, validationsFile))
	for fields, want := range map[string]string{
		`"size":"smal"`:                     `does not allow "smal"; did you mean "small"? size is small or large`,
		`"size":"huge"`:                     `does not allow "huge"; size is small or large`,
		`"placement":{"zone":"z-11"}`:       `does not allow "z-11"; did you mean "z-1"? `,
		`"placement":{"zone":"z-3"}`:        `does not allow "z-3"; Zones`,
		`"disks":[{"gib":1,"type":"sssd"}]`: `does not allow "sssd"; did you mean "ssd"? `,
	} {
		t.Run(fields, func(t *testing.T) {
			if _, err := Check(validationCase{fields: fields}.input(t, from)); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
