package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestPushUploadsImageAndList(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	folder := filepath.Join(t.TempDir(), "image")
	if err := fixed.write(folder, []content{small(t)}); err != nil {
		t.Fatal(err)
	}
	to := strings.TrimPrefix(server.URL, "http://") + "/machine-iac-operator:v1.2.3"
	var out bytes.Buffer
	if err := push(t.Context(), folder, to, &out); err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewDigest(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatalf("push printed %q: %v", out.String(), err)
	}
	pushed, err := remote.Image(reference, remote.WithPlatform(host))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := pushed.Digest()
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(reference.Digest(digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	found, err := referrers.IndexManifest()
	if err != nil || len(found.Manifests) != 1 {
		t.Fatalf("what refers to the image: %v, %v", found, err)
	}
	artifact, err := remote.Image(reference.Digest(found.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err := artifact.Manifest(); err != nil || manifest.Config.MediaType != sbomType ||
		manifest.Layers[0].MediaType != sbomType {
		t.Errorf("the list is %v, %v", manifest, err)
	}
	for _, tc := range []struct{ folder, to, want string }{
		{folder, "UPPER/case", "write REGISTRY/REPOSITORY:TAG"},
		{t.TempDir(), to, "run 'make image'"},
	} {
		if err := push(t.Context(), tc.folder, tc.to, io.Discard); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("push %s: %v; want %q", tc.to, err, tc.want)
		}
	}
}

func TestAnArchiveHasTheImageByItsName(t *testing.T) {
	folder, file := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image.tar")
	if err := fixed.write(folder, []content{small(t)}); err != nil {
		t.Fatal(err)
	}
	const as = "machine-iac-operator:dev"
	if err := run(t.Context(), []string{"archive", "-layout", folder, as, file}, io.Discard); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(as)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := image.ConfigFile(); err != nil || config.Architecture != host.Architecture {
		t.Errorf("the image is %+v: %v", config, err)
	}
	if err := archive(t.TempDir(), as, file); err == nil || !strings.Contains(err.Error(), "run 'make image'") {
		t.Errorf("without a layout: %v", err)
	}
}
