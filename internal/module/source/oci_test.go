package source

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

func TestAModuleThatWasPushedIsFetched(t *testing.T) {
	_, location := newRegistry(t)
	_, want := example(t)
	pushed, err := pack(t).Push(t.Context(), location+"/team/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(pushed.String(), location+"/team/acme:v1@sha256:") {
		t.Errorf("it is pushed to %s; want the place with a digest", pushed)
	}
	withoutTag := strings.Replace(pushed.String(), ":v1@", "@", 1)
	withAnotherTag := strings.Replace(pushed.String(), ":v1@", ":v0.9@", 1)
	for _, reference := range []string{pushed.String(), withoutTag, withAnotherTag} {
		got, err := Fetch(t.Context(), reference, quick())
		if err != nil || got.Reference() != want.Reference() {
			t.Errorf("%s is %v, %v; want %s", reference, got, err, want.Reference())
		}
	}
}

func TestAModuleGivesTheSameArtifactEachTime(t *testing.T) {
	_, location := newRegistry(t)
	first, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
	if err != nil || second.String() != first.String() {
		t.Errorf("got %s, %v; want %s again", second, err, first)
	}
}

func TestTheArtifactIsOneThatOtherToolsRead(t *testing.T) {
	s, location := newRegistry(t)
	packed := pack(t)
	if _, err := packed.Push(t.Context(), location+"/acme:v1", quick()); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(s.URL + "/v2/acme/manifests/v1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	manifest, err := v1.ParseManifest(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if manifest.ArtifactType != "application/vnd.machine-iac.module.v1" || manifest.MediaType != "application/vnd.oci.image.manifest.v1+json" ||
		manifest.Config.MediaType != "application/vnd.oci.empty.v1+json" || manifest.Config.Size != 2 || len(manifest.Layers) != 1 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	layer := manifest.Layers[0]
	if layer.MediaType != "application/vnd.machine-iac.module.v1.tar+gzip" || layer.Digest.String() != sum(packed.Archive) ||
		layer.Annotations["org.opencontainers.image.title"] != "kubemark.tar.gz" {
		t.Errorf("the layer is %+v", layer)
	}
	if contentType := response.Header.Get("Content-Type"); contentType != string(manifest.MediaType) {
		t.Errorf("the registry calls it %s", contentType)
	}
}

func TestArtifactsOfOtherToolsAreTaken(t *testing.T) {
	archive := pack(t).Archive
	folder := folderTarball(t, "kubemark")
	readme := blob{mediaType: "text/markdown", content: []byte("# read me")}
	cases := map[string]struct {
		artifactType string
		layers       []blob
	}{
		"a folder, with no word on what it is":      {"application/vnd.unknown.artifact.v1", []blob{{mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", content: folder}}},
		"a file, taken for a tar":                   {"application/vnd.unknown.artifact.v1", []blob{{mediaType: "application/vnd.oci.image.layer.v1.tar", content: archive}}},
		"an image":                                  {"", []blob{{mediaType: "application/vnd.docker.image.rootfs.diff.tar.gzip", content: archive}}},
		"the module's media type beside a document": {ArtifactType, []blob{readme, {mediaType: LayerMediaType, content: folder}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, location := newRegistry(t)
			_, want := example(t)
			got, err := Fetch(t.Context(), location+"/acme@"+upload(t, s, tc.artifactType, tc.layers...), quick())
			if err != nil || got.Reference() != want.Reference() {
				t.Errorf("got %v, %v; want %s", got, err, want.Reference())
			}
		})
	}
}

func TestArtifactsThatAreRefused(t *testing.T) {
	archive := pack(t).Archive
	good := blob{mediaType: LayerMediaType, content: archive}
	cases := map[string]struct {
		layers []blob
		want   string
	}{
		"no layer":                           {nil, "which has no layer; use the digest of the manifest of the module's own artifact"},
		"two layers that may be meant":       {[]blob{good, {mediaType: LayerMediaType, content: []byte("other")}}, "it must have one of " + LayerMediaType},
		"two layers of which none is marked": {[]blob{{mediaType: generic[0], content: archive}, {mediaType: generic[0], content: []byte("x")}}, "has layers of the media types " + generic[0]},
		"a layer that is no archive by name": {[]blob{{mediaType: "text/plain", content: archive}}, "has layers of the media types text/plain"},
		"a layer that is no archive":         {[]blob{{mediaType: LayerMediaType, content: []byte("no archive")}}, "not a complete tar.gz"},
		"a layer that says that it is large": {[]blob{{mediaType: LayerMediaType, content: archive, size: module.MaxArchiveBytes + 1}}, "has 8388609 bytes: it has more than 8388608 bytes"},
		"a layer that is large":              {[]blob{{mediaType: LayerMediaType, content: make([]byte, module.MaxArchiveBytes+1), size: 3}}, "it has more than 8388608 bytes"},
		"a layer that is not there":          {[]blob{{mediaType: LayerMediaType, content: []byte("x"), absent: true}}, "getting the artifact's layer sha256:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, location := newRegistry(t)
			reference := location + "/acme@" + upload(t, s, ArtifactType, tc.layers...)
			_, err := Fetch(t.Context(), reference, quick())
			if err == nil || !strings.Contains(err.Error(), "fetching the module from "+reference+": ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}

func TestAnIndexIsRefused(t *testing.T) {
	s, location := newRegistry(t)
	index := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
	put(t, s.URL+"/v2/acme/manifests/v1", "application/vnd.oci.image.index.v1+json", index)
	_, err := Fetch(t.Context(), location+"/acme@"+sum(index), quick())
	if err == nil || !strings.Contains(err.Error(), `an artifact of the type "application/vnd.oci.image.index.v1+json", which has no layer`) {
		t.Errorf("got %v", err)
	}
}

func TestARegistryThatReturnsSomethingElse(t *testing.T) {
	other := []byte(`{"schemaVersion":2,"layers":[]}`)
	for _, kind := range []string{"manifests", "blobs"} {
		t.Run("in place of "+kind, func(t *testing.T) {
			s, location := newRegistry(t)
			pushed, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
			if err != nil {
				t.Fatal(err)
			}
			s.respondWith(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/"+kind+"/") {
					return false
				}
				_, _ = w.Write(other)
				return true
			})
			options := quick()
			options.CacheDir = t.TempDir()
			if got, err := Fetch(t.Context(), pushed.String(), options); err == nil || !strings.Contains(err.Error(), sum(other)[7:]) {
				t.Errorf("got %v, %v; want the digest of what came", got, err)
			}
			s.respondWith(nil)
			if _, err := Fetch(t.Context(), pushed.String(), options); err != nil {
				t.Errorf("what came has spoiled the cache: %v", err)
			}
		})
	}
}

func TestWhatIsNotInTheRegistry(t *testing.T) {
	_, location := newRegistry(t)
	_, err := Fetch(t.Context(), location+"/acme"+allowed, quick())
	if err == nil || !strings.Contains(err.Error(), "was the artifact pushed to it?") {
		t.Errorf("got %v", err)
	}
}

func TestARegistryThatIsBusy(t *testing.T) {
	s, location := newRegistry(t)
	pushed, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	busy := func(times int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/v2/" { // asked again with each try
				return false
			}
			if times--; times < 0 {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
	}
	s.respondWith(busy(2))
	options := quick()
	logged := record(&options)
	if _, err := Fetch(t.Context(), pushed.String(), options); err != nil || strings.Count(logged.String(), "status code 503") != 2 {
		t.Errorf("got %v; want a third try, and two in the log:\n%s", err, logged)
	}
	s.respondWith(busy(1))
	if _, err := pack(t).Push(t.Context(), location+"/acme:v2", quick()); err != nil {
		t.Errorf("got %v; want a push to be tried again", err)
	}
	s.respondWith(busy(1000))
	if _, err := Fetch(t.Context(), pushed.String(), quick()); err == nil || !strings.HasSuffix(err.Error(), "tried 4 times") {
		t.Errorf("got %v; want it to give up", err)
	}
}

// dockerConfig writes a configuration with credentials for a host.
func dockerConfig(t *testing.T, host, user, password string) {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	content, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"auth": auth}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

// guard has a registry require a user and a password.
func guard(s *server) {
	s.respondWith(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); ok && user == "me" && password == "hunter2" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"log in"}]}`, http.StatusUnauthorized)
		return true
	})
}

func TestCredentialsComeFromDockersConfiguration(t *testing.T) {
	s, location := newRegistry(t)
	guard(s)
	host := strings.TrimPrefix(location, "oci://")
	dockerConfig(t, host, "me", "hunter2")
	pushed, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), pushed.String(), quick()); err != nil {
		t.Fatal(err)
	}
	for name, configure := range map[string]func(t *testing.T){
		"a password that is wrong": func(t *testing.T) { dockerConfig(t, host, "me", "hunter3") },
		"no password":              func(t *testing.T) { t.Setenv("DOCKER_CONFIG", t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			configure(t)
			options := quick()
			logged := record(&options)
			before := s.count()
			_, err := Fetch(t.Context(), pushed.String(), options)
			want := fmt.Sprintf("add credentials for %s to Docker's configuration", host)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %q", err, want)
			}
			if strings.Contains(fmt.Sprint(err, logged), "hunter") {
				t.Errorf("the password is shown:\n%v\n%s", err, logged)
			}
			if requests := s.count() - before; requests > 2 {
				t.Errorf("it asked %d times; want no second try with what was refused", requests)
			}
		})
	}
}

func TestPushRefuses(t *testing.T) {
	cases := map[string]struct {
		target, want string
	}{
		"a place without a tag":     {"oci://registry.example.com/acme", "has no tag; use oci://registry/repository:tag"},
		"a digest":                  {"oci://registry.example.com/acme:v1" + allowed, "is computed from what is pushed; remove it"},
		"a file":                    {"file:///srv/acme.tar.gz", "is not a location in a registry"},
		"an image as others say it": {"registry.example.com/acme:v1", "not a reference to a module"},
		"a user and a password":     {"oci://me:hunter2@registry.example.com/acme:v1", "contains a user"},
	}
	packed := pack(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := packed.Push(t.Context(), tc.target, quick())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}
