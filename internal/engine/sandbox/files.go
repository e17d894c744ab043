package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemFiles is what programs of a system read: libraries and other programs, how names and users are resolved, the time zone, authorities,
// what the kernel reports, and tokens that are good for a cloud and not for the cluster. What a distribution lacks is left out.
//
// Landlock keeps what /proc has of the memory, the environment and the open files of processes outside of the sandbox from those inside.
var systemFiles = []string{
	"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store",
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/hostname", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/os-release", "/etc/alternatives",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies",
	"/var/lib/ca-certificates", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
	"/dev/urandom", "/dev/random", "/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
	"/var/run/secrets/openshift", "/var/run/secrets/eks.amazonaws.com", "/var/run/secrets/azure",
}

// devices are what programs write into that go nowhere.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full"}

// maxLinks bounds the links of a tree that are followed, maxEntries the files that are looked at.
const (
	maxLinks   = 1000
	maxEntries = 100000
)

// Tree returns a folder and the targets outside of it that links in it lead to: a mirror may be made of links.
func Tree(dir string) []string {
	if dir == "" {
		return nil
	}
	found, entries := []string{dir}, 0
	root := followed(dir)
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		entries++
		switch {
		case entries > maxEntries || len(found) > maxLinks:
			return fs.SkipAll
		case err != nil || entry.Type()&fs.ModeSymlink == 0:
			return nil // what cannot be read here cannot be there either
		}
		if target, err := filepath.EvalSymlinks(path); err == nil && !inside(target, root) && !slices.Contains(found, target) {
			found = append(found, target)
		}
		return nil
	})
	return found
}

// Named returns the files and folders that variables of an environment name, one or a list of them.
func Named(environment map[string]string) []string {
	var found []string
	for _, value := range environment {
		for _, path := range strings.Split(value, string(os.PathListSeparator)) {
			if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
				continue
			}
			if _, err := os.Stat(path); err == nil {
				found = append(found, filepath.Clean(path))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
