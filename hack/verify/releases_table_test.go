package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// releaseRow is a row of hack/tools/releases.txt: tool, platform, version, URL, checksum and member.
var releaseRow = regexp.MustCompile(`^([a-z-]+)\|linux_(amd64|arm64)\|(\d+\.\d+)(\.\d+)\|(https://\S+)\|sha256:([0-9a-f]{64})\|(\S*)$`)

// TestReleasesAreThoseThatAreBuilt compares the table of releases with the go.mod files that pin the same tools. Patch versions may
// differ, because a Go module and the files of its release appear at different times.
func TestReleasesAreThoseThatAreBuilt(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "hack/tools/releases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := pinnedTools(t)
	rows, seen, kubernetes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := releaseRow.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if cells == nil {
			t.Errorf("%q does not match %s", line, releaseRow)
			continue
		}
		tool, arch, minor, patch, url, sum, member := cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7]
		if !strings.HasPrefix(pinned[tool], "v"+minor+".") {
			t.Errorf("%s: the release is %s%s, but %q is built", tool, minor, patch, pinned[tool])
		}
		if !strings.Contains(url, "/v"+minor+patch+"/") || !strings.Contains(url, arch) {
			t.Errorf("%s: %s is not the URL of %s%s for %s", tool, url, minor, patch, arch)
		}
		if archive := strings.HasSuffix(url, ".tar.gz") || strings.HasSuffix(url, ".zip"); archive == (member == "") {
			t.Errorf("%s: got the member %q of %s", tool, member, url)
		}
		if rows[tool+" "+arch] || seen[url] || seen[sum] {
			t.Errorf("%s for %s repeats another row's tool, URL or checksum", tool, arch)
		}
		rows[tool+" "+arch], seen[url], seen[sum] = true, true, true
		if strings.HasPrefix(tool, "kube") {
			kubernetes[minor+patch] = true
		}
	}
	for tool := range pinned {
		if !rows[tool+" amd64"] || !rows[tool+" arm64"] {
			t.Errorf("%s has no row for amd64 or arm64", tool)
		}
	}
	if len(kubernetes) != 1 {
		t.Errorf("got releases %v of Kubernetes, want one version", kubernetes)
	}
}

// pinnedTools returns the version of each tool with releases that is built from source.
func pinnedTools(t *testing.T) map[string]string {
	t.Helper()
	cluster, opentofu := requirements(t, "hack/tools/cluster/go.mod"), requirements(t, "hack/tools/opentofu/go.mod")
	kubernetes := cluster["k8s.io/kubernetes"]
	return map[string]string{
		"etcd": cluster["go.etcd.io/etcd/server/v3"], "kwok": cluster["sigs.k8s.io/kwok"],
		"tofu":           opentofu["github.com/opentofu/opentofu"],
		"kube-apiserver": kubernetes, "kube-controller-manager": kubernetes, "kube-scheduler": kubernetes, "kubectl": kubernetes,
	}
}
