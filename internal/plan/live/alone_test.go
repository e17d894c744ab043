package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// insideVariable has TestMain run a command in the network namespace that this process was started in, and names the address to listen at.
const insideVariable = "LIVE_TEST_LISTEN_AT"

// Files of a process in a namespace.
const (
	hatchFile = 3 + iota
	countersFile
)

// runInside runs a command line that a listener was made for in this network namespace, where loopback is the only interface. The
// listener goes to who started this process, and leads out of the namespace.
func runInside(address string, arguments []string) error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("raising loopback: %w", err)
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // it is there at once or not at all
	if err != nil {
		return err
	}
	tcp, _ := listener.(*net.TCPListener)
	file, err := tcp.File()
	if err != nil {
		return err
	}
	if err := syscall.Sendmsg(hatchFile, []byte{0}, syscall.UnixRights(int(file.Fd())), nil, 0); err != nil {
		return err
	}
	if err := errors.Join(file.Close(), listener.Close(), syscall.Close(hatchFile)); err != nil {
		return err
	}
	command := exec.Command(arguments[0], arguments[1:]...) //nolint:noctx // the namespace's owner ends it
	command.Env, command.Stdout, command.Stderr = []string{}, os.Stdout, os.Stderr
	ended := command.Run()
	var planned []byte
	for _, name := range []string{"snmp", "snmp6"} {
		content, err := os.ReadFile("/proc/self/net/" + name)
		if err != nil {
			return err
		}
		planned = append(planned, content...)
	}
	if _, err := os.NewFile(countersFile, "counters").Write(planned); err != nil {
		return err
	}
	return ended
}

// raiseLoopback sets the first interface up, which loopback is.
func raiseLoopback() error {
	const size, index = syscall.SizeofNlMsghdr + syscall.SizeofIfInfomsg, 1
	message := binary.NativeEndian.AppendUint32(nil, size)
	message = binary.NativeEndian.AppendUint16(message, syscall.RTM_NEWLINK)
	message = binary.NativeEndian.AppendUint16(message, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK)
	message = append(message, make([]byte, 12)...) // sequence, sender, family and type
	message = binary.NativeEndian.AppendUint32(message, index)
	message = binary.NativeEndian.AppendUint32(message, syscall.IFF_UP)
	message = binary.NativeEndian.AppendUint32(message, syscall.IFF_UP)
	socket, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer syscall.Close(socket) //nolint:errcheck // it has served
	if err := syscall.Sendto(socket, message, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	response := make([]byte, 4096)
	length, _, err := syscall.Recvfrom(socket, response, 0)
	if err != nil || length < syscall.SizeofNlMsghdr+4 {
		return errors.Join(err, errors.New("the kernel does not respond"))
	}
	if code := int32(binary.NativeEndian.Uint32(response[syscall.SizeofNlMsghdr:])); code != 0 { //nolint:gosec // the kernel writes an int32
		return syscall.Errno(-code)
	}
	return nil
}

// visit is what a command did in a network namespace of its own.
type visit struct {
	out, errOut string
	err         error
	// led is how many connections led out, and counters are what the kernel counted.
	led      int
	counters map[string]int
}

// elsewhere says what reached for anything but the one address.
func (v *visit) elsewhere() []string {
	var found []string
	if opened := v.counters["Tcp ActiveOpens"]; opened != v.led {
		found = append(found, fmt.Sprintf("%d connections were begun, of which %d were to the API server", opened, v.led))
	}
	for _, name := range []string{"Ip OutNoRoutes", "Ip6OutNoRoutes", "Udp OutDatagrams", "Udp6OutDatagrams"} {
		if count := v.counters[name]; count != 0 {
			found = append(found, fmt.Sprintf("%s is %d", name, count))
		}
	}
	return found
}

// visitAlone runs a command line with an empty environment in a network namespace whose loopback leads to one address outside, and to
// nothing else. It fails where namespaces are forbidden: a test that was skipped would prove nothing.
func visitAlone(t *testing.T, address string, arguments ...string) *visit {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "hatch")
	planned, counters, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer planned.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "/proc/self/exe", arguments...)
	var out, errOut strings.Builder
	command.Env, command.ExtraFiles, command.Dir = []string{insideVariable + "=" + address}, []*os.File{theirs, counters}, t.TempDir()
	command.Stdout, command.Stderr = &out, &errOut
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%v; this test needs user and network namespaces: allow them (user.max_user_namespaces, seccomp, AppArmor), or run it where they are", err)
	}
	_, _ = theirs.Close(), counters.Close() // the process has its own
	led := leadTo(t, pair[0], address)
	result := &visit{err: command.Wait(), out: out.String(), errOut: errOut.String()}
	content, err := io.ReadAll(planned)
	if err != nil || len(content) == 0 {
		t.Fatalf("nothing was counted (%v): %v\n%s", err, result.err, result.errOut)
	}
	result.counters = countersIn(string(content))
	// What was begun last may wait to be taken.
	for deadline := time.Now().Add(2 * time.Second); int(led.Load()) < result.counters["Tcp ActiveOpens"] && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	result.led = int(led.Load())
	return result
}

// leadTo takes the listener that comes through a socket, leads its connections to an address, and counts them.
func leadTo(t *testing.T, hatch int, address string) *atomic.Int64 {
	t.Helper()
	defer syscall.Close(hatch) //nolint:errcheck // it has served
	rights := make([]byte, syscall.CmsgSpace(4))
	_, length, _, _, err := syscall.Recvmsg(hatch, make([]byte, 1), rights, 0)
	if err != nil || length == 0 {
		t.Fatalf("no listener came out of the namespace: %v", err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:length])
	if err != nil {
		t.Fatal(err)
	}
	files, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(files[0]), "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	t.Cleanup(func() { _ = listener.Close() })
	led := &atomic.Int64{}
	go func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			led.Add(1)
			go lead(t.Context(), inside, address)
		}
	}()
	return led
}

func lead(ctx context.Context, inside net.Conn, address string) {
	defer inside.Close()
	outside, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer outside.Close()
	go func() {
		_, _ = io.Copy(outside, inside)
		_ = outside.Close()
	}()
	_, _ = io.Copy(inside, outside)
}

// countersIn reads the kernel's counters: lines of titles followed by lines of values, and lines of both.
func countersIn(planned string) map[string]int {
	counters, titles := map[string]int{}, map[string][]string{}
	set := func(name, value string) {
		if count, err := strconv.Atoi(value); err == nil {
			counters[name] = count
		}
	}
	for line := range strings.Lines(planned) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && !strings.HasSuffix(fields[0], ":"):
			set(fields[0], fields[1])
		case titles[fields[0]] == nil:
			titles[fields[0]] = fields
		default:
			for n, title := range titles[fields[0]][1:] {
				set(strings.TrimSuffix(fields[0], ":")+" "+title, fields[n+1])
			}
		}
	}
	return counters
}
