package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/internal/modulelist"
)

// TestProvidersOfTheBuiltInModules has a mirror with the provider of one module.
func TestProvidersOfTheBuiltInModules(t *testing.T) {
	catalog, err := loadModules(t.Context(), options{workDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	mirror, plugins := t.TempDir(), t.TempDir()
	statuses := func(o options) map[string]modulelist.Status {
		found := map[string]modulelist.Status{}
		for _, one := range o.providersOf(catalog.Modules()) {
			if one.Provider == "" || one.Version == "" {
				t.Errorf("%+v has no provider", one)
			}
			found[one.Module+" on "+one.Engine+": "+one.Provider] = one.Status
		}
		return found
	}
	const aws, azure = "aws on Terraform: hashicorp/aws", "azure on Terraform: hashicorp/azurerm"
	none := statuses(options{providerMirror: mirror, pulumiPlugins: plugins})
	if none[aws] != modulelist.Missing || none[azure] != modulelist.Missing || len(none) < 10 {
		t.Errorf("without any provider: %v", none)
	}
	for _, one := range (&options{}).providersOf(catalog.Modules()) {
		if one.Provider == "hashicorp/aws" && one.Engine == "Terraform" {
			platform := filepath.Join(mirror, "registry.opentofu.org", one.Provider, one.Version, runtime.GOOS+"_"+runtime.GOARCH)
			if err := os.MkdirAll(platform, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		options    options
		aws, azure modulelist.Status
	}{
		"in the mirror":       {options{providerMirror: mirror}, modulelist.Present, modulelist.Missing},
		"or downloaded":       {options{providerMirror: mirror, allowDownloads: true}, modulelist.Present, modulelist.Download},
		"in Jobs' own image":  {options{jobs: jobOptions{place: inJobs, image: "x"}}, modulelist.Unknown, modulelist.Unknown},
		"in Jobs of this one": {options{providerMirror: mirror, jobs: jobOptions{place: inJobs}}, modulelist.Present, modulelist.Missing},
	} {
		got := statuses(test.options)
		if diff := cmp.Diff([]modulelist.Status{test.aws, test.azure}, []modulelist.Status{got[aws], got[azure]}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheListIsPublished(t *testing.T) {
	options := options{workDir: t.TempDir(), namespace: "ns"}
	catalog, err := loadModules(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	live := fake.NewClientBuilder().Build()
	ended := make(chan error, 1)
	go func() { ended <- (&moduleLister{client: live, catalog: catalog, options: options}).Start(ctx) }()
	var got []modulelist.Provider
	for end := time.Now().Add(10 * time.Second); len(got) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got, err = modulelist.Read(ctx, live, "ns")
	}
	if diff := cmp.Diff(options.providersOf(catalog.Modules()), got); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
