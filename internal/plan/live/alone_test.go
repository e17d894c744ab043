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

// insideVariable tells TestMain to run a command in this process's network namespace, and names the listen address.
const insideVariable = "LIVE_TEST_LISTEN_AT"

// Files of a process in a namespace.
const (
	hatchFile = 3 + iota
	countersFile
)

// runInside runs a command in this network namespace, where loopback is the only interface. It passes a listener to the
// parent process, which forwards connections out of the namespace.
func runInside(address string, arguments []string) error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("raising loopback: %w", err)
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // does not block
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

// raiseLoopback sets the first interface, loopback, up.
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
	if code := int32(binary.NativeEndian.Uint32(response[syscall.SizeofNlMsghdr:])); code != 0 { //nolint:gosec // int32
		return syscall.Errno(-code)
	}
	return nil
}

// visit is the result of a command in its own network namespace.
type visit struct {
	out, errOut string
	err         error
	// led counts forwarded connections; counters are the kernel's.
	led      int
	counters map[string]int
}

// elsewhere lists attempts to reach anything but the allowed address.
func (v *visit) elsewhere() []string {
	var found []string
	if opened := v.counters["Tcp ActiveOpens"]; opened != v.led {
		found = append(found, fmt.Sprintf("%d connections were begun, of which %d were to the API server", opened,
			v.led))
	}
	for _, name := range []string{"Ip OutNoRoutes", "Ip6OutNoRoutes", "Udp OutDatagrams", "Udp6OutDatagrams"} {
		if count := v.counters[name]; count != 0 {
			found = append(found, fmt.Sprintf("%s is %d", name, count))
		}
	}
	return found
}

// visitAlone runs a command with an empty environment in a network namespace whose loopback leads to one outside
// address only. It fails where namespaces are forbidden, since a skipped test proves nothing.
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
	command.Env, command.ExtraFiles, command.Dir = []string{insideVariable + "=" + address}, []*os.File{theirs,
		counters}, t.TempDir()
	command.Stdout, command.Stderr = &out, &errOut
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%v; this test needs user and network namespaces: allow them (user.max_user_namespaces, seccomp, "+
			"AppArmor), or run it where they are", err)
	}
	_, _ = theirs.Close(), counters.Close() // the process has its own
	led := leadTo(t, pair[0], address)
	result := &visit{err: command.Wait(), out: out.String(), errOut: errOut.String()}
	content, err := io.ReadAll(planned)
	if err != nil || len(content) == 0 {
		t.Fatalf("nothing was counted (%v): %v\n%s", err, result.err, result.errOut)
	}
	result.counters = countersIn(string(content))
	// The last connections may not have been accepted yet.
	for deadline := time.Now().Add(2 * time.Second); int(led.Load()) < result.counters["Tcp ActiveOpens"] &&
		time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	result.led = int(led.Load())
	return result
}

// leadTo receives the listener through a socket, forwards its connections to an address, and counts them.
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

// countersIn parses the kernel's counters: pairs of lines with titles and values.
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
