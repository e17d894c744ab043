package offline

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

func filesOf(files map[string]string) fs.FS {
	found := fstest.MapFS{}
	for name, content := range files {
		found[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return found
}

func TestDataSourcesAreDeferred(t *testing.T) {
	cases := map[string]struct{ given, want string }{
		"one that depends on nothing": {
			given: "data \"a\" \"b\" {\n  name = \"c\"\n}\n",
			want:  "data \"a\" \"b\" {\n  name       = \"c\"\n  depends_on = [terraform_data.machine_iac_later]\n}\n",
		},
		"one without arguments": {
			given: "data \"a\" \"b\" {}\n",
			want:  "data \"a\" \"b\" {\n  depends_on = [terraform_data.machine_iac_later]\n}\n",
		},
		"one on one line": {
			given: "data \"a\" \"b\" { name = \"c\" }\n",
			want:  "data \"a\" \"b\" { name = \"c\"\n depends_on = [terraform_data.machine_iac_later]\n}\n",
		},
		"one that depends on something": {
			given: "data \"a\" \"b\" {\n  depends_on = [a.c, a.d]\n}\n",
			want:  "data \"a\" \"b\" {\n  depends_on = [terraform_data.machine_iac_later, a.c, a.d]\n}\n",
		},
		"one that depends on something, over several lines": {
			given: "data \"a\" \"b\" {\n  depends_on = [\n    a.c, # why\n  ]\n}\n",
			want:  "data \"a\" \"b\" {\n  depends_on = [terraform_data.machine_iac_later,\n    a.c, # why\n  ]\n}\n",
		},
		"one that depends on an empty list": {
			given: "data \"a\" \"b\" {\n  depends_on = []\n}\n",
			want:  "data \"a\" \"b\" {\n  depends_on = [terraform_data.machine_iac_later,]\n}\n",
		},
		"a resource is left alone, to the letter": {
			given: "resource \"a\" \"b\"{\nname=\"c\"\n}",
			want:  "resource \"a\" \"b\"{\nname=\"c\"\n}",
		},
	}
	squeeze := func(text string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(text) }
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newSource(filesOf(map[string]string{"main.tf": tc.given}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(squeeze(tc.want), squeeze(string(got.files["module/main.tf"]))); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
			if _, diags := hclwrite.ParseConfig(got.files["module/main.tf"], "main.tf",
				hcl.InitialPos); diags.HasErrors() {
				t.Errorf("it is no HCL any more: %v\n%s", diags, got.files["module/main.tf"])
			}
		})
	}
}

func TestWhatBelongsToAModule(t *testing.T) {
	got, err := newSource(filesOf(map[string]string{
		"main.tf": "resource \"x\" \"y\" {}\ndata \"z\" \"y\" {}\n", ".terraform.lock.hcl": "lock",
		"templates/a.tpl": "tpl", "module.yaml": "meta",
		"lookup/import.tf": "not HCL {", "tests/a.tftest.hcl": "", "examples/a.yaml": "", ".terraform/modules/x.tf": "",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"main.tf.json": true, ".terraform.lock.hcl": true, "module/main.tf": true,
		"module/templates/a.tpl": true, "module/module.yaml": true, "module/machine_iac_later.tf": true}
	found := map[string]bool{}
	for name := range got.files {
		found[name] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"x": true, "z": true}, got.kinds); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestSourceRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a file in the preview's place": {laterFile: ""},
		"what is no HCL":                {"main.tf": "resource {"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := newSource(filesOf(files)); err == nil {
				t.Errorf("it returns %v", got.files)
			}
		})
	}
}

func TestCallOf(t *testing.T) {
	cases := map[string]struct {
		address  string
		want     int
		wantRest string
		wantOK   bool
	}{
		"a resource":                {"module.machine12.a.b[0]", 12, "a.b[0]", true},
		"a data source":             {"module.machine0.data.a.b", 0, "data.a.b", true},
		"a resource of the root":    {"terraform_data.unknown", 0, "", false},
		"another module":            {"module.other.a.b", 0, "", false},
		"a name that only looks so": {"module.machinery.a.b", 0, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, rest, ok := callOf(tc.address)
			if ok != tc.wantOK || ok && (got != tc.want || rest != tc.wantRest) {
				t.Errorf("it returns %d, %q, %t", got, rest, ok)
			}
		})
	}
}
