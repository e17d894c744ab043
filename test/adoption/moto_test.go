package adoption

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// howToGetMoto is what a person does to have the tests run that need it.
const howToGetMoto = "there is no moto_server on PATH, a local server with AWS's APIs: pip install 'moto[server]==5.2.1'"

// moto is a server of AWS's APIs in memory, and who makes things there as OpenShift's installer and its own actuator do.
type moto struct {
	t   *testing.T
	url string
}

// startMoto starts a server that ends with the test. Where there is no program for it, the test is skipped.
func startMoto(t *testing.T) *moto {
	t.Helper()
	program, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skip(howToGetMoto)
	}
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	command := exec.CommandContext(t.Context(), program, "-H", "127.0.0.1", "-p", port) //nolint:gosec // a program of the developer's
	command.Dir = t.TempDir()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A shim may have started it.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
	})
	m := &moto{t: t, url: "http://" + address}
	m.wait()
	return m
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// wait waits until it responds.
func (m *moto) wait() {
	m.t.Helper()
	for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		response, err := http.Get(m.url + "/moto-api/data.json")
		if err == nil {
			_ = response.Body.Close()
			return
		}
		if time.Since(begin) > 3*time.Minute {
			m.t.Fatalf("moto_server does not respond: %v", err)
		}
	}
}

// reset removes all that was made.
func (m *moto) reset() {
	m.t.Helper()
	response, err := http.Post(m.url+"/moto-api/reset", "", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		m.t.Fatalf("moto_server responds %s", response.Status)
	}
}

// element is one of XML.
type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Inner   []element `xml:",any"`
}

// first returns the text of the first element of a name, at any depth.
func (e element) first(name string) string {
	for _, inner := range e.Inner {
		if inner.XMLName.Local == name {
			return strings.TrimSpace(inner.Text)
		}
		if text := inner.first(name); text != "" {
			return text
		}
	}
	return ""
}

// do calls an action of EC2, or of another service ("elasticloadbalancing CreateListener"), and returns the text of an element of its response.
func (m *moto) do(action, wanted string, arguments ...string) string {
	m.t.Helper()
	service, version := "ec2", "2016-11-15"
	if name, rest, ok := strings.Cut(action, " "); ok {
		service, version, action = name, "2015-12-01", rest
	}
	form := url.Values{"Action": {action}, "Version": {version}}
	for n := 0; n+1 < len(arguments); n += 2 {
		form.Set(arguments[n], arguments[n+1])
	}
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.url, strings.NewReader(form.Encode()))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		m.t.Fatalf("%s: %s: %v: %s", action, response.Status, err, content)
	}
	var read element
	if err := xml.Unmarshal(content, &read); err != nil {
		m.t.Fatal(err)
	}
	text := read.first(wanted)
	if text == "" && wanted != "" {
		m.t.Fatalf("%s: the response has no %s: %s", action, wanted, content)
	}
	return text
}

// tag gives tags to something, as names and values in turns.
func (m *moto) tag(id string, tags ...string) {
	m.t.Helper()
	arguments := []string{"ResourceId.1", id}
	for n := 0; n+1 < len(tags); n += 2 {
		arguments = append(arguments, fmt.Sprintf("Tag.%d.Key", n/2+1), tags[n], fmt.Sprintf("Tag.%d.Value", n/2+1), tags[n+1])
	}
	m.do("CreateTags", "", arguments...)
}
