package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemFiles are what programs read of the system: libraries and other programs, name and user
// resolution, time zones, CA certificates, kernel information, and tokens that are valid for a
// cloud and not for the cluster. Missing ones are ignored.
//
// Landlock protects /proc: processes inside cannot read the memory, the environment and the open
// files of processes outside.
var systemFiles = []string{
	"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store",
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/hostname", "/etc/nsswitch.conf", "/etc/gai.conf",
	"/etc/services", "/etc/protocols",
	"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/os-release",
	"/etc/alternatives",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
	"/etc/crypto-policies",
	"/var/lib/ca-certificates", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
	"/dev/urandom", "/dev/random", "/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu",
	"/sys/kernel/mm/transparent_hugepage",
	"/var/run/secrets/openshift", "/var/run/secrets/eks.amazonaws.com", "/var/run/secrets/azure",
}

// devices are what programs write to without an effect.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full"}

// maxLinks limits the links of a tree that are followed, and maxEntries the files that are visited.
const (
	maxLinks   = 1000
	maxEntries = 100000
)

// Tree returns a folder and the targets outside of it that its links lead to, since a mirror may
// consist of links.
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
			return nil // what is unreadable here is unreadable there too
		}
		if target, err := filepath.EvalSymlinks(path); err == nil && !inside(target, root) &&
			!slices.Contains(found, target) {
			found = append(found, target)
		}
		return nil
	})
	return found
}

// Named returns the files and folders in the variables of an environment, each with one or a list
// of them.
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
