package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func TestVariables(t *testing.T) {
	t.Run("are those of a run", func(t *testing.T) {
		input := inputWith(t, valid+`}`)
		inputs, err := Render(input)
		if err != nil {
			t.Fatal(err)
		}
		input.Credentials = nil // a preview has no credentials
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
	t.Run("are encoded one by one as they are together", func(t *testing.T) {
		values := map[string]cty.Value{
			"user_data": cty.StringVal("#!/bin/sh\necho \"<&>\u2028\""), "machine": cty.EmptyObjectVal,
			"cluster": cty.ObjectVal(map[string]cty.Value{"zone": cty.NullVal(cty.String),
				"size": cty.MustParseNumberVal("1e3")}),
		}
		want, err := ctyjson.Marshal(cty.ObjectVal(values), cty.ObjectVal(values).Type())
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&variables{values: values}).marshal()
		if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
			t.Errorf("the variables (-want +got):\n%s\n%v", diff, err)
		}
	})
	t.Run("are not encoded where one is not known", func(t *testing.T) {
		if got, err := (&variables{values: map[string]cty.Value{"machine": cty.UnknownVal(cty.String)}}).
			marshal(); err == nil {
			t.Errorf("it returns %s", got)
		}
	})
	t.Run("need a Machine", func(t *testing.T) {
		if _, err := Variables(Input{}); err == nil || IsFieldError(err) {
			t.Errorf("it returns %v; want a mistake of the caller", err)
		}
	})
}
