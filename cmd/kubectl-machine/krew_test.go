package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// krewPlugin is what krew reads of a manifest.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// maxKrewDescription is what krew's index allows of a short description.
const maxKrewDescription = 50

func TestTheKrewManifestIsThatOfThisPlugin(t *testing.T) {
	content, err := os.ReadFile("../../install/krew/machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(content, &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Spec.Version != "VERSION" {
		t.Errorf("it is a %s %s of version %s", plugin.APIVersion, plugin.Kind, plugin.Spec.Version)
	}
	if name := newRoot().Name(); name != "kubectl-"+plugin.Metadata.Name {
		t.Errorf("it is named %q, and the binary %q", plugin.Metadata.Name, name)
	}
	if short := plugin.Spec.ShortDescription; short == "" || len(short) > maxKrewDescription || strings.HasSuffix(short, ".") {
		t.Errorf("its short description has %d letters: %q", len(short), short)
	}
	var platforms []string
	for _, platform := range plugin.Spec.Platforms {
		system, arch := platform.Selector.MatchLabels["os"], platform.Selector.MatchLabels["arch"]
		platforms = append(platforms, system+"/"+arch)
		want := krewPlatform{
			Selector: platform.Selector, Bin: newRoot().Name(), SHA256: strings.ToUpper("SHA256_" + system + "_" + arch),
			URI: plugin.Spec.Homepage + "/releases/download/VERSION/kubectl-machine-" + system + "-" + arch + ".tar.gz",
		}
		if system == "windows" {
			want.Bin += ".exe"
		}
		if diff := cmp.Diff(want, platform); diff != "" {
			t.Errorf("platform %s/%s (-want +got):\n%s", system, arch, diff)
		}
	}
	if diff := cmp.Diff(platformsOfMakefile(t), platforms); diff != "" {
		t.Errorf("platforms that 'make plugin-archives' builds for (-Makefile +manifest):\n%s", diff)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if path := strings.TrimPrefix(plugin.Spec.Homepage, "https://"); !strings.HasPrefix(string(module), "module "+path+"\n") {
		t.Errorf("its homepage %s is not where the module is", plugin.Spec.Homepage)
	}
}

func platformsOfMakefile(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^PLUGIN_PLATFORMS \?= (.*)$`).FindSubmatch(makefile)
	if match == nil {
		t.Fatal("the Makefile has no PLUGIN_PLATFORMS")
	}
	return strings.Fields(string(match[1]))
}
