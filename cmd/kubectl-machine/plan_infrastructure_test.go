package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// clusterAware returns the folder of a module that writes what is known of the cluster into the annotation of its instance.
func clusterAware(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "example")
	if err := os.CopyFS(folder, os.DirFS(repository(t, "internal", "plan", "preview", "testdata", "modules", "example"))); err != nil {
		t.Fatal(err)
	}
	edit := func(name, before, after string) {
		file := filepath.Join(folder, name)
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), before) {
			t.Fatalf("%s has no %q: %v", file, before, err)
		}
		write(t, file, strings.Replace(string(content), before, after, 1))
	}
	edit("main.tf", "annotation       = var.machine.cluster_id", `annotation       = "${coalesce(var.cluster.region, "nowhere")}: ${jsonencode(var.cluster.resource_tags)}"`)
	edit("variables.tf", `variable "user_data" {`, `variable "cluster" {
  type = object({
    region        = optional(string)
    resource_tags = optional(list(object({ key = string, value = string })), [])
  })
  description = "What is known of the cluster."
  default     = {}
}

variable "user_data" {`)
	return folder
}

const infrastructureOnAWS = `apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
spec: {aNewField: {that: "this version does not know"}}
status:
  infrastructureName: demo-x7k2p
  platformStatus:
    type: AWS
    aws: {region: us-east-1, resourceTags: [{key: team, value: a}]}
`

func TestPlanTakesWhatIsKnownOfTheClusterFromAnInfrastructure(t *testing.T) {
	long.Test(t)
	module, dir := clusterAware(t), t.TempDir()
	infrastructure, among := filepath.Join(dir, "infrastructure.yaml"), filepath.Join(dir, "all.yaml")
	set := repository(t, "internal", "plan", "preview", "testdata", "golden", "machineset.input.yaml")
	content, err := os.ReadFile(set)
	if err != nil {
		t.Fatal(err)
	}
	write(t, infrastructure, infrastructureOnAWS)
	write(t, among, infrastructureOnAWS+"---\n"+string(content))
	const known, nothing = `= "us-east-1: [{\"key\":\"team\",\"value\":\"a\"}]"`, `= "nowhere: []"`
	for name, tc := range map[string]struct {
		arguments        []string
		wantOut, wantErr string
	}{
		"from a file":                         {[]string{"-f", set, "--infrastructure", infrastructure}, known, ""},
		"from among the manifests":            {[]string{"-f", among}, known, ""},
		"nothing is known":                    {[]string{"-f", set}, nothing, ""},
		"a file without one":                  {[]string{"-f", set, "--infrastructure", set}, "", "has no Infrastructure of config.openshift.io/v1; write 'kubectl get infrastructure cluster -o yaml' into it"},
		"two of them":                         {[]string{"-f", among, "-f", infrastructure}, "", "infrastructure.yaml:2: document 1, Infrastructure cluster: kind: there is another in"},
		"a file that is named has precedence": {[]string{"-f", among, "--infrastructure", infrastructure}, known, ""},
	} {
		t.Run(name, func(t *testing.T) {
			flags := append([]string{"plan", "--cache-dir", t.TempDir(), "--module-dir", module}, realEngine(t)...)
			got := runCommand(t, append(flags, tc.arguments...)...)
			if tc.wantErr != "" {
				if got.code != 1 || !strings.Contains(got.err, tc.wantErr) {
					t.Errorf("it ends with %d, %q; want %q", got.code, got.err, tc.wantErr)
				}
				return
			}
			if got.code != 0 || !strings.Contains(got.out, tc.wantOut) || strings.Contains(got.err, "Infrastructure cluster") {
				t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
			}
		})
	}
}
