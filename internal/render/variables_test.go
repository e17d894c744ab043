package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariables(t *testing.T) {
	t.Run("are those of a run", func(t *testing.T) {
		input := inputWith(t, valid+`}`)
		inputs, err := Render(input)
		if err != nil {
			t.Fatal(err)
		}
		input.Credentials = nil // a preview has none
		got, err := Variables(input)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(inputs.Variables), string(got)); diff != "" {
			t.Errorf("the variables (-want +got):\n%s", diff)
		}
	})
	t.Run("are none where the type does not fit", func(t *testing.T) {
		input := inputWith(t, valid+`,"size":[]}`)
		input.Under = "spec.template"
		if got, err := Variables(input); !IsFieldError(err) {
			t.Errorf("it returns %s, %v", got, err)
		}
	})
	t.Run("need a Machine", func(t *testing.T) {
		if _, err := Variables(Input{}); err == nil || IsFieldError(err) {
			t.Errorf("it returns %v; want a mistake of the caller", err)
		}
	})
}
