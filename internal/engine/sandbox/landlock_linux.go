package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock's access rights used here: reading, changing, and those of both that apply to files.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	changeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE

	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockABI returns the kernel's Landlock version, or zero and what the kernel lacks.
func landlockABI() (version int, lacks string) {
	found, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch failed {
	case 0:
		return int(found), ""
	case unix.EOPNOTSUPP:
		return 0, "it was not enabled when the kernel started (boot parameter lsm=)"
	case unix.ENOSYS:
		return 0, "the kernel is older than 5.13 or was built without it, or a seccomp profile hides its calls"
	default:
		return 0, "its first call fails, possibly because of a seccomp profile: " + failed.Error()
	}
}

// handled returns what a version of Landlock can deny: file rights and scopes. It ignores rights
// after version 7: they would deny sockets with a path, by which engines reach warm providers.
func handled(version int) (files, scopes uint64) {
	files = readRights | changeRights
	if version < 2 {
		files &^= unix.LANDLOCK_ACCESS_FS_REFER // it is always denied then
	}
	if version < 3 {
		files &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		scopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return files, scopes
}

// restrict confines this thread, and everything that it becomes or starts, to the files of an
// order. This cannot be undone.
func restrict(o order) error {
	files, scopes := handled(o.ABI)
	attributes := unix.LandlockRulesetAttr{Access_fs: files, Scoped: scopes}
	ruleset, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)),
		unsafe.Sizeof(attributes), 0)
	if failed != 0 {
		return fmt.Errorf("creating a Landlock ruleset: %w", failed)
	}
	for _, one := range []struct {
		paths    []string
		rights   uint64
		optional bool
	}{
		{o.Read, readRights, true},
		{devices, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE, true},
		{o.Write, readRights | changeRights, false},
	} {
		for _, path := range one.paths {
			err := allow(int(ruleset), path, one.rights&files)
			if one.optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES)) {
				continue
			}
			if err != nil {
				return fmt.Errorf("allowing %s: %w", path, err)
			}
		}
	}
	if _, _, failed := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); failed != 0 {
		return fmt.Errorf("restricting this process with Landlock: %w", failed)
	}
	return unix.Close(int(ruleset))
}

// allow adds a rule for a file, or for a folder with everything in it.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // it was only named
	var found unix.Stat_t
	if err := unix.Fstat(fd, &found); err != nil {
		return err
	}
	if found.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, failed := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if failed != 0 {
		return failed
	}
	return nil
}
