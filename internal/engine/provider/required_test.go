package provider

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
)

func TestLackingNamesPinnedProvidersThatTheMirrorLacks(t *testing.T) {
	module := fstest.MapFS{"terraform.tf": {Data: []byte(`terraform {
  required_providers {
    cloud  = { source = "acme/cloud", version = "1.0.0" }
    other  = { source = "registry.opentofu.org/acme/other", version = "= 2.0.0" }
    packed = { source = "acme/packed", version = "3.0.0" }
    newer  = { source = "acme/cloud2", version = ">= 1.0.0" }
    gone   = { source = "acme/cloud", version = "1.1.0" }
  }
}`)}, "broken.tf": {Data: []byte("terraform {")}}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	mirror := t.TempDir()
	write(t, filepath.Join(mirror, acme, "1.0.0", platform, binary), "program")
	write(t, filepath.Join(mirror, "registry.opentofu.org/acme/packed", "terraform-provider-packed_3.0.0_"+platform+".zip"), "archive")
	write(t, filepath.Join(mirror, acme, "1.1.0", "plan9_mips", binary), "program")
	want := []Requirement{{"acme/cloud", "1.1.0"}, {"registry.opentofu.org/acme/other", "2.0.0"}}
	if got := Lacking(mirror, Pinned(module)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
