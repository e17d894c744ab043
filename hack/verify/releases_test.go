package verify

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// released is the content of a released program.
const released = "downloaded\n"

// tarred returns a .tar.gz file with a released, as etcd's releases are.
func tarred(t *testing.T, member string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	header := packed.WriteHeader(&tar.Header{Name: member, Mode: 0o755, Size: int64(len(released))})
	_, written := packed.Write([]byte(released))
	if err := errors.Join(header, written, packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// zipped returns a .zip file with a program beside a text, as OpenTofu's releases are.
func zipped(t *testing.T, member string) string {
	t.Helper()
	var out bytes.Buffer
	packed := zip.NewWriter(&out)
	for _, name := range []string{"LICENSE", member} {
		entry, err := packed.Create(name)
		if err == nil {
			_, err = entry.Write([]byte(released))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// releases is a server of releases. A path below /downloads/ redirects to the file, as GitHub does.
func releases(t *testing.T, files map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, redirected := strings.CutPrefix(r.URL.Path, "/downloads/")
		switch content, known := files[strings.TrimPrefix(path, "/")]; {
		case redirected:
			http.Redirect(w, r, "/"+path, http.StatusFound)
		case known:
			fmt.Fprint(w, content)
		case path == "/hangs":
			<-r.Context().Done()
		case path == "/stalls":
			fmt.Fprint(w, "down")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case path == "/cut":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "down")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// downloads gives the toolbox the curl and unzip of this machine, and a table of releases of a server. It returns what they all
// have in the environment.
func (b *toolbox) downloads(server string, files map[string]string) []string {
	b.t.Helper()
	for _, name := range []string{"curl", "unzip"} {
		file, err := exec.LookPath(name)
		if err != nil {
			b.t.Skipf("install %s to run this test: %v", name, err)
		}
		if err := os.Symlink(file, b.path("system", name)); err != nil {
			b.t.Fatal(err)
		}
	}
	var table strings.Builder
	row := func(tool, url, content, member string) {
		fmt.Fprintf(&table, "%s|linux_amd64|1.2.3|%s|sha256:%x|%s\n", tool, url, sha256.Sum256([]byte(content)), member)
	}
	row("etcd", server+"/downloads/v3/etcd.tar.gz", files["v3/etcd.tar.gz"], "etcd-v3/etcd")
	row("tofu", server+"/downloads/v1/tofu.zip", files["v1/tofu.zip"], "tofu")
	row("kwok", server+"/v0/kwok-linux-amd64", released, "")
	row("kubectl", server+"/v0/kwok-linux-amd64", "", "")
	row("kube-apiserver", "http://127.0.0.1:1/kube-apiserver", released, "")
	row("kube-scheduler", server+"/hangs", released, "")
	row("kube-controller-manager", server+"/stalls", released, "")
	row("pulumi", server+"/cut", released, "")
	row("promtool", server+"/downloads/v9/promtool", released, "")
	row("helm", server+"/v3/etcd.tar.gz", files["v3/etcd.tar.gz"], "etcd-v4/etcd")
	row("vcsim", server+"/v1/tofu.zip", files["v1/tofu.zip"], "terraform")
	b.write("releases.txt", table.String())
	return []string{"TOOLS_STALL=1", "TOOLS_RELEASES=" + b.path("releases.txt")}
}

func TestReleasesAreDownloaded(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	files := map[string]string{
		"v3/etcd.tar.gz": tarred(t, "etcd-v3/etcd"), "v1/tofu.zip": zipped(t, "tofu"), "v0/kwok-linux-amd64": released,
	}
	server := releases(t, files)
	environment := b.downloads(server.URL, files)
	good := []string{"etcd", "tofu", "kwok"}
	output := b.run(environment, good...)
	if !strings.Contains(output, "0 were there, 3 taken, 0 built") {
		t.Errorf("auto: got\n%s", output)
	}
	for _, tool := range good {
		if info, err := os.Stat(b.path("bin", tool)); b.content(tool) != released || err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s: got %q, %v, %v, want the release", tool, b.content(tool), info.Mode(), err)
		}
	}
	if stages, err := filepath.Glob(b.path("bin", "kwok-stages", "*.yaml")); err != nil || len(stages) != 4 {
		t.Errorf("stages beside a downloaded KWOK: got %v, %v", stages, err)
	}
	server.Close()
	if output := b.run(environment, good...); !strings.Contains(output, "3 were there") {
		t.Errorf("downloaded programs are not kept:\n%s", output)
	}
	if b.run(append(environment, "TOOLS=build"), good...); !b.built("etcd") || !b.built("kwok") || !b.built("tofu") {
		t.Error("build: a downloaded program was kept")
	}
}

func TestWhatCannotBeDownloadedIsBuilt(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	files := map[string]string{
		"v3/etcd.tar.gz": tarred(t, "etcd-v3/etcd"), "v1/tofu.zip": zipped(t, "tofu"), "v0/kwok-linux-amd64": released,
	}
	environment := b.downloads(releases(t, files).URL, files)
	reasons := map[string]string{
		"kubectl": "the checksum is not sha256:e3b0c442", "kube-apiserver": "curl: (7)", "kube-scheduler": "curl: (28) Operation too slow",
		"kube-controller-manager": "curl: (28) Operation too slow", "pulumi": "curl: (18)", "promtool": "curl: (22)",
		"helm": "etcd-v4/etcd: Not found in archive", "vcsim": "filename not matched",
	}
	output := b.fails(append(environment, "TOOLS=download"), "kubectl")
	if want := "kubectl could not be downloaded; TOOLS=auto builds it instead"; !strings.Contains(output, want) {
		t.Errorf("download: got\n%s\nwant %q", output, want)
	}
	output = b.run(environment, slices.Collect(maps.Keys(reasons))...)
	if !strings.Contains(output, "0 were there, 0 taken, 8 built") {
		t.Errorf("auto: got\n%s", output)
	}
	for tool, reason := range reasons {
		want := regexp.MustCompile("tools: " + tool + " is not downloaded: .*" + regexp.QuoteMeta(reason))
		if !want.MatchString(output) || !b.built(tool) {
			t.Errorf("%s: got %q, want it built; output\n%s\nwant %s", tool, b.content(tool), output, want)
		}
	}
}
