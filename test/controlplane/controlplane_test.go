package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestAssetsDirectory(t *testing.T) {
	full := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(full, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	if err := os.Symlink(full, filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	tcs := map[string]struct {
		configured, root, want, wantError string
	}{
		"what is configured wins":                   {configured: full, root: t.TempDir(), want: full},
		"the repository's bin is the default":       {root: root, want: filepath.Join(root, "bin")},
		"missing binaries name the target to run":   {root: t.TempDir(), wantError: "make tools"},
		"a configured folder without them is named": {configured: "/nowhere", root: root, wantError: "/nowhere"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got, err := assetsDirectory(tc.configured, tc.root)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if (err != nil) != (tc.wantError != "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got error %v, want one that says %q", err, tc.wantError)
			}
		})
	}
}

func TestCRDFilesExist(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, features := range []FeatureSet{Default, CustomNoUpgrade} {
		files, err := crdFiles(root, features)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", features, err)
			}
		}
	}
}

func TestStatusPatch(t *testing.T) {
	tcs := map[string]struct {
		object client.Object
		want   string
	}{
		"an object without a status": {object: builder.Secret()},
		"an empty status":            {object: builder.Machine()},
		"a status and nothing else": {
			object: builder.Machine(builder.WithPhase("Running")), want: `{"status":{"phase":"Running"}}`,
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got, err := statusPatch(tc.object)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestSame(t *testing.T) {
	spec := func(raw string) *machinev1beta1.Machine {
		machine := builder.Machine()
		machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(raw)}
		return machine
	}
	tcs := map[string]struct {
		one, other *machinev1beta1.Machine
		want       bool
	}{
		"a copy":              {one: spec(`{"a":1}`), other: spec(`{"a":1}`), want: true},
		"the order of fields": {one: spec(`{"a":1,"b":2}`), other: spec(`{"b":2,"a":1}`), want: true},
		"another value":       {one: spec(`{"a":1}`), other: spec(`{"a":2}`)},
		"another phase": {
			one: builder.Machine(), other: builder.Machine(builder.WithPhase("Running")),
		},
		"what the API server cannot read": {one: spec(`{`), other: spec(`{`)},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			tc.one.ObjectMeta.DeepCopyInto(&tc.other.ObjectMeta)
			if got := same(tc.one, tc.other); got != tc.want {
				t.Errorf("same returns %t, want %t", got, tc.want)
			}
		})
	}
}
